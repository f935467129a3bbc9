// Attention over an f16 cache in AVX-512.
#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/f16/f16.h"
#include "kernels/avx2/avx2.h"
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/vector.h"

namespace bankml::avx512 {
namespace {

// The accumulator of a head of N * 16 values stays in registers.
template <int N>
void attend_cells_sized(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q,
                        const ScoreRule &rule, OnlineSoftmax &state, float *out) {
    constexpr std::size_t d = N * 16;
    float m = state.maximum, s = state.sum;
    __m512 acc[N];
    for (int i = 0; i < N; ++i) {
        acc[i] = _mm512_loadu_ps(out + i * 16);
    }
    for (std::size_t block = begin; block < end; block += 64) {
        const std::size_t cells = std::min<std::size_t>(64, end - block);
        float score[64];
        f16_dots(cache.k + block * d, cells, d, q, score);
        for (std::size_t c = 0; c < cells; ++c) {
            const float value = rule(score[c]);
            float rescale = 1.0f, weight = 1.0f;
            if (value > m) {
                rescale = std::exp(m - value);
                m = value;
                for (auto &v : acc) {
                    v = through16_f16(_mm512_mul_ps(v, _mm512_set1_ps(rescale)));
                }
            } else {
                weight = std::exp(value - m);
            }
            const std::uint16_t *v = cache.v + (block + c) * d;
            for (int i = 0; i < N; ++i) {
                acc[i] = through16_f16(_mm512_fmadd_ps(load16_f16(v + i * 16), _mm512_set1_ps(weight), acc[i]));
            }
            s = std::fma(s, rescale, weight);
        }
    }
    for (int i = 0; i < N; ++i) {
        _mm512_storeu_ps(out + i * 16, acc[i]);
    }
    state = {m, s};
}

// c[rows][ldc] += a[rows][lda] * b[depth][ldb]: one chain of multiply-adds an element, in order of depth.
template <int R, int V>
inline void multiply_tile(float *c, std::size_t ldc, const float *a, std::size_t lda, const float *b, std::size_t ldb,
                          std::size_t depth) {
    __m512 acc[R][V];
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < V; ++v) {
            acc[r][v] = _mm512_loadu_ps(c + r * ldc + v * 16);
        }
    }
    for (std::size_t t = 0; t < depth; ++t) {
        __m512 row[V];
        for (int v = 0; v < V; ++v) {
            row[v] = _mm512_loadu_ps(b + t * ldb + v * 16);
        }
        for (int r = 0; r < R; ++r) {
            const __m512 by = _mm512_set1_ps(a[r * lda + t]);
            for (int v = 0; v < V; ++v) {
                acc[r][v] = _mm512_fmadd_ps(row[v], by, acc[r][v]);
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < V; ++v) {
            _mm512_storeu_ps(c + r * ldc + v * 16, acc[r][v]);
        }
    }
}

template <int V>
void multiply_rows(float *c, std::size_t ldc, const float *a, std::size_t lda, const float *b, std::size_t ldb,
                   std::size_t rows, std::size_t depth) {
    std::size_t r = 0;
    for (; r + 6 <= rows; r += 6) {
        multiply_tile<6, V>(c + r * ldc, ldc, a + r * lda, lda, b, ldb, depth);
    }
    for (; r < rows; ++r) {
        multiply_tile<1, V>(c + r * ldc, ldc, a + r * lda, lda, b, ldb, depth);
    }
}

void multiply_add(float *c, std::size_t ldc, const float *a, std::size_t lda, const float *b, std::size_t ldb,
                  std::size_t rows, std::size_t depth, std::size_t columns) {
    std::size_t j = 0;
    for (; j + 64 <= columns; j += 64) {
        multiply_rows<4>(c + j, ldc, a, lda, b + j, ldb, rows, depth);
    }
    for (; j + 16 <= columns; j += 16) {
        multiply_rows<1>(c + j, ldc, a, lda, b + j, ldb, rows, depth);
    }
    for (; j < columns; ++j) {
        for (std::size_t r = 0; r < rows; ++r) {
            float sum = c[r * ldc + j];
            for (std::size_t t = 0; t < depth; ++t) {
                sum = std::fma(b[t * ldb + j], a[r * lda + t], sum);
            }
            c[r * ldc + j] = sum;
        }
    }
}

}  // namespace

void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, const ScoreRule &rule,
                  OnlineSoftmax &state, float *out, float *scratch) {
    switch (cache.head_size) {
        case 64: return attend_cells_sized<4>(cache, begin, end, q, rule, state, out);
        case 96: return attend_cells_sized<6>(cache, begin, end, q, rule, state, out);
        case 128: return attend_cells_sized<8>(cache, begin, end, q, rule, state, out);
        default: return avx2::attend_cells(cache, begin, end, q, rule, state, out, scratch);
    }
}

#include "kernels/avx2/attend_tile.inc"

}  // namespace bankml::avx512
