// Attention over an f16 cache in AVX2.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/f16_dot.h"

namespace bankml::avx2 {
namespace {

// c[rows][ldc] (+)= a[rows][lda] * b[depth][64 or d columns], one chain of multiply-adds an element, in order of depth.
void multiply_add(float *c, std::size_t ldc, const float *a, std::size_t lda, const float *b, std::size_t ldb,
                  std::size_t rows, std::size_t depth, std::size_t columns) {
    for (std::size_t r = 0; r < rows; r += 4) {
        const std::size_t some = rows - r < 4 ? rows - r : 4;
        for (std::size_t j = 0; j < columns; j += 8) {
            __m256 acc[4];
            for (std::size_t i = 0; i < 4; ++i) {
                acc[i] = i < some ? _mm256_loadu_ps(c + (r + i) * ldc + j) : _mm256_setzero_ps();
            }
            for (std::size_t t = 0; t < depth; ++t) {
                const __m256 v = _mm256_loadu_ps(b + t * ldb + j);
                for (std::size_t i = 0; i < 4; ++i) {
                    acc[i] = _mm256_fmadd_ps(v, _mm256_set1_ps(a[(r + (i < some ? i : 0)) * lda + t]), acc[i]);
                }
            }
            for (std::size_t i = 0; i < some; ++i) {
                _mm256_storeu_ps(c + (r + i) * ldc + j, acc[i]);
            }
        }
    }
}

}  // namespace

void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, const ScoreRule &rule,
                  OnlineSoftmax &state, float *out, float *) {
    const std::size_t d = cache.head_size;
    float m = state.maximum, s = state.sum;
    for (std::size_t cell = begin; cell < end; ++cell) {
        const float score = rule(f16_dot(cache.k + cell * d, d, q));
        float rescale = 1.0f, weight = 1.0f;
        if (score > m) {
            rescale = std::exp(m - score);
            m = score;
            const __m256 by = _mm256_set1_ps(rescale);
            for (std::size_t i = 0; i < d; i += 8) {
                const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(out + i), by);
                _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)));
            }
        } else {
            weight = std::exp(score - m);
        }
        const __m256 by = _mm256_set1_ps(weight);
        for (std::size_t i = 0; i < d; i += 8) {
            const __m256 v = _mm256_fmadd_ps(load_f16(cache.v + cell * d + i), by, _mm256_loadu_ps(out + i));
            _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)));
        }
        s = std::fma(s, rescale, weight);
    }
    state = {m, s};
}

#include "kernels/avx2/attend_tile.inc"

}  // namespace bankml::avx2
