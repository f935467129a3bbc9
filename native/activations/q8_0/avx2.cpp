// The q8_0 quantizer in AVX2.
#include "kernels/avx2/avx2.h"
#include "activations/activation.h"
#include "kernels/avx2/bytes.h"

namespace bankml::avx2 {

void quantize_q8_0(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        __m256 v[4];
        for (int i = 0; i < 4; ++i) {
            v[i] = _mm256_loadu_ps(x + i * 8);
        }
        __m256 peaks = _mm256_andnot_ps(sign, v[0]);
        for (int i = 1; i < 4; ++i) {
            peaks = _mm256_max_ps(peaks, _mm256_andnot_ps(sign, v[i]));
        }
        __m128 four = _mm_max_ps(_mm256_extractf128_ps(peaks, 1), _mm256_castps256_ps128(peaks));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        const float peak = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
        const float inverse = peak != 0.0f ? 127.0f / peak : 0.0f;
        d[block] = widen_one(_cvtss_sh(peak / 127.0f, _MM_FROUND_TO_NEAREST_INT));
        __m256i whole[4];
        for (int i = 0; i < 4; ++i) {
            whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
        }
        const __m256i packed =
            _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3]));
        const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(q), bytes);
        sum[block] = sum_all(sum_fours(bytes));
    }
}

}  // namespace bankml::avx2
