// The q8_K quantizer in AVX2.
#include <cstring>

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/bytes.h"

namespace bankml::avx2 {
namespace {

// The first value of the largest magnitude; what is no number is passed over.
float peak_of(const float *x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 largest = _mm256_setzero_ps();
    for (std::size_t i = 0; i < q8_K_values; i += 8) {
        // The second operand where either is no number.
        largest = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + i)), largest);
    }
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(largest, 1), _mm256_castps256_ps128(largest));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    const __m256 most = _mm256_set1_ps(_mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four))));
    for (std::size_t i = 0; i < q8_K_values; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        const int equal = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_andnot_ps(sign, v), most, _CMP_EQ_OQ));
        if (equal != 0) {
            return x[i + std::size_t(__builtin_ctz(unsigned(equal)))];
        }
    }
    return 0.0f;
}

// Eight integers: see portable's `nearest`.
inline __m256i nearest8(__m256 v) {
    const __m256i bits = _mm256_castps_si256(_mm256_add_ps(v, _mm256_set1_ps(12582912.0f)));
    const __m256i low = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff));
    const __m256i value = _mm256_sub_epi32(low, _mm256_set1_epi32(0x400000));
    // A byte is what is left of it, so that 127 is the only bound.
    return _mm256_and_si256(_mm256_min_epi32(value, _mm256_set1_epi32(127)), _mm256_set1_epi32(0xff));
}

}  // namespace

void quantize_q8_K(std::size_t n, const float *x, std::int8_t *q, float *d, std::int16_t *sums) {
    for (std::size_t block = 0; block < n / q8_K_values;
         ++block, x += q8_K_values, q += q8_K_values, sums += q8_K_sums) {
        const float peak = peak_of(x);
        if (peak == 0.0f) {
            d[block] = 0.0f;
            std::memset(q, 0, q8_K_values);
            std::memset(sums, 0, q8_K_sums * sizeof(std::int16_t));
            continue;
        }
        const float factor = -127.0f / peak;
        const __m256 by = _mm256_set1_ps(factor);
        for (std::size_t i = 0; i < q8_K_values; i += 32) {
            __m256i v[4];
            for (std::size_t j = 0; j < 4; ++j) {
                v[j] = nearest8(_mm256_mul_ps(by, _mm256_loadu_ps(x + i + j * 8)));
            }
            const __m256i packed =
                _mm256_packus_epi16(_mm256_packus_epi32(v[0], v[1]), _mm256_packus_epi32(v[2], v[3]));
            const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(q + i), bytes);
            const __m256i fours = sum_fours(bytes);  // eight sums: the first four make 16 values
            const __m256i eights = _mm256_hadd_epi32(fours, fours), all = _mm256_hadd_epi32(eights, eights);
            sums[i / 16] = std::int16_t(_mm256_extract_epi32(all, 0));
            sums[i / 16 + 1] = std::int16_t(_mm256_extract_epi32(all, 4));
        }
        d[block] = 1.0f / factor;
    }
}

}  // namespace bankml::avx2
