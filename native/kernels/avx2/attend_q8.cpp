// Attention over a q8_0 cache in AVX2.
#include <cmath>

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/vector.h"
#include "kernels/cache_q8.h"

namespace bankml::avx2 {
namespace {

inline float dot(const std::uint8_t *k, std::size_t head_size, const Q8Column &q) {
    __m256 acc = _mm256_setzero_ps();
    for (std::size_t b = 0; b < head_size / q8_0_values; ++b, k += q8_0_block_bytes) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(k + 2));
        const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(q.q + b * q8_0_values));
        // Pairs stay within 16 bits: a quantizer gives -128 only for what is no number, and then never twice positive.
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_sign_epi8(x, x), _mm256_sign_epi8(y, x));
        const __m256 fours = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        acc = _mm256_fmadd_ps(_mm256_set1_ps(widen_one(block_scale(k)) * q.d[b]), fours, acc);
    }
    return sum_halves(acc);
}

inline void add_weighted(const std::uint8_t *v, std::size_t head_size, float weight, float *out) {
    const __m256 by = _mm256_set1_ps(weight);
    for (std::size_t i = 0; i < head_size; i += q8_0_values, v += q8_0_block_bytes) {
        const __m256 d = _mm256_set1_ps(widen_one(block_scale(v)));
        for (std::size_t j = 0; j < q8_0_values; j += 8) {
            const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(v + 2 + j));
            const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), d);
            _mm256_storeu_ps(out + i + j, _mm256_fmadd_ps(value, by, _mm256_loadu_ps(out + i + j)));
        }
    }
}

}  // namespace

void attend_cells_q8(const Q8HeadCache &cache, std::size_t begin, std::size_t end, const Q8Column &q,
                     const ScoreRule &rule, OnlineSoftmax &state, float *out) {
    const std::size_t n = cache.head_size, row = q8_0_row_bytes(n);
    float m = state.maximum, s = state.sum;
    for (std::size_t cell = begin; cell < end; ++cell) {
        const float score = rule(dot(cache.k + cell * row, n, q));
        float rescale = 1.0f, weight = 1.0f;
        if (score > m) {
            rescale = std::exp(m - score);
            m = score;
            for (std::size_t i = 0; i < n; i += 8) {
                _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(out + i), _mm256_set1_ps(rescale)));
            }
        } else {
            weight = std::exp(score - m);
        }
        add_weighted(cache.v + cell * row, n, weight, out);
        s = std::fma(s, rescale, weight);
    }
    state = {m, s};
}

}  // namespace bankml::avx2
