// The AVX2 table: the F16 products and the attention kernels; row-wise functions are in rows_avx2.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/avx2.h"
#include "kernels/cache_q8.h"
#include "kernels/quantized.h"
#include "kernels/vector_avx2.h"

namespace bankml {
namespace {

float f16_dot(const std::uint16_t *w, std::size_t k, const float *x) {
    const std::size_t whole = k & ~std::size_t{31};
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
    for (std::size_t i = 0; i < whole; i += 32) {
        a0 = _mm256_fmadd_ps(load_f16(w + i), _mm256_loadu_ps(x + i), a0);
        a1 = _mm256_fmadd_ps(load_f16(w + i + 8), _mm256_loadu_ps(x + i + 8), a1);
        a2 = _mm256_fmadd_ps(load_f16(w + i + 16), _mm256_loadu_ps(x + i + 16), a2);
        a3 = _mm256_fmadd_ps(load_f16(w + i + 24), _mm256_loadu_ps(x + i + 24), a3);
    }
    return finish_dot(sum_neighbours(_mm256_add_ps(_mm256_add_ps(a1, a3), _mm256_add_ps(a0, a2))), w, x, whole, k);
}

void f16_dot_rows(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, float *y) {
    for (std::size_t r = 0; r < rows; ++r) {
        y[r] = f16_dot(w + r * k, k, x);
    }
}

template <int C>
void block_tile(const float *a, const float *x, std::size_t k, float *y, std::size_t ldy) {
    __m256 acc[C][4];
    for (auto &column : acc) {
        for (auto &v : column) {
            v = _mm256_setzero_ps();
        }
    }
    for (std::size_t i = 0; i < k; i += 8, a += 32) {
        for (int c = 0; c < C; ++c) {
            const __m256 b = _mm256_loadu_ps(x + c * k + i);
            for (int r = 0; r < 4; ++r) {
                acc[c][r] = _mm256_fmadd_ps(_mm256_loadu_ps(a + r * 8), b, acc[c][r]);
            }
        }
    }
    for (int c = 0; c < C; ++c) {
        for (int r = 0; r < 4; ++r) {
            y[c * ldy + r] = sum_halves(acc[c][r]);
        }
    }
}

void f16_block(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t columns, float *y,
               std::size_t ldy, float *scratch) {
    for (std::size_t r = 0; r < rows; r += 4) {  // four rows interleaved, eight values at a time
        for (std::size_t i = 0; i < k; i += 8) {
            for (std::size_t j = 0; j < 4; ++j) {
                _mm256_storeu_ps(scratch + r * k + i * 4 + j * 8, load_f16(w + (r + j) * k + i));
            }
        }
    }
    for (std::size_t c = 0; c < columns; c += 3) {
        for (std::size_t r = 0; r < rows; r += 4) {
            const float *a = scratch + r * k;
            float *out = y + c * ldy + r;
            switch (columns - c) {
                case 1: block_tile<1>(a, x + c * k, k, out, ldy); break;
                case 2: block_tile<2>(a, x + c * k, k, out, ldy); break;
                default: block_tile<3>(a, x + c * k, k, out, ldy);
            }
        }
    }
}

void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, float scale,
                  float *maximum, float *sum, float *out, float *) {
    const std::size_t d = cache.head_size;
    float m = -std::numeric_limits<float>::infinity(), s = 0.0f;
    for (std::size_t i = 0; i < d; i += 8) {
        _mm256_storeu_ps(out + i, _mm256_setzero_ps());
    }
    for (std::size_t cell = begin; cell < end; ++cell) {
        const float score = f16_dot(cache.k + cell * d, d, q) * scale;
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
    *maximum = m;
    *sum = s;
}

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

#include "kernels/attend_tile.inc"

}  // namespace

const Kernels avx2_kernels = {
    .name = "avx2",
    .round_f16 = avx2::round_f16,
    .widen_f16 = avx2::widen_f16,
    .through_f16 = avx2::through_f16,
    .f16_dot_rows = f16_dot_rows,
    .f16_block = f16_block,
    .quantize_q8 = avx2::quantize_q8,
    .q1_0_rows = avx2::q1_0_rows,
    .q1_0_block = avx2::q1_0_block,
    .q1_0_block_scratch = avx2::q1_0_block_scratch,
    .q2_0_rows = avx2::q2_0_rows,
    .rms_norm = avx2::rms_norm,
    .swiglu = avx2::swiglu,
    .add = avx2::add,
    .rotate = avx2::rotate,
    .attend_cells = attend_cells,
    .attend_tile = attend_tile,
    .hadamard = avx2::hadamard,
    .attend_cells_q8 = avx2::attend_cells_q8,
};

}  // namespace bankml
