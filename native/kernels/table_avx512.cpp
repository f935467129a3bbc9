// The AVX-512 table: one 512-bit register carries two of the definition's eight-lane accumulators.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/avx2.h"
#include "kernels/cache_q8.h"
#include "kernels/quantized.h"
#include "kernels/vector_avx2.h"

namespace bankml {
namespace {

inline __m512 load16_f16(const std::uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
}

inline __m512 through16_f16(__m512 v) { return _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }

// Accumulators 0 and 1 in `low`, 2 and 3 in `high`.
inline float finish_pairs(__m512 low, __m512 high) {
    const __m512 pair = _mm512_add_ps(low, high);
    return sum_neighbours(_mm256_add_ps(_mm512_extractf32x8_ps(pair, 1), _mm512_castps512_ps256(pair)));
}

// One row after the other: a single stream of weights is what the hardware's prefetchers follow best. Two rows at once read
// memory at half the rate, and software prefetches only cost.
void f16_dot_rows(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, float *y) {
    const std::size_t whole = k & ~std::size_t{31};
    for (std::size_t r = 0; r < rows; ++r, w += k) {
        __m512 low = _mm512_setzero_ps(), high = low;
        for (std::size_t i = 0; i < whole; i += 32) {
            low = _mm512_fmadd_ps(load16_f16(w + i), _mm512_loadu_ps(x + i), low);
            high = _mm512_fmadd_ps(load16_f16(w + i + 16), _mm512_loadu_ps(x + i + 16), high);
        }
        y[r] = finish_dot(finish_pairs(low, high), w, x, whole, k);
    }
}

// Four lanes a row for the rows of two accumulators: (0+4) (1+5) (2+6) (3+7).
inline __m512 add_halves(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

// The sums of eight rows, from four accumulators of two rows each.
inline __m256 sum_rows8(const __m512 acc[4]) {
    const __m512 a = add_halves(acc[0], acc[1]), b = add_halves(acc[2], acc[3]);
    const __m512 quarters = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    const __m512 sums = _mm512_add_ps(quarters, _mm512_permute_ps(quarters, 0xb1));
    const __m512i pick = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps256(_mm512_permutexvar_ps(pick, sums));
}

inline __m128 sum_rows4(const __m512 acc[2]) {
    const __m512 a = add_halves(acc[0], acc[1]);
    const __m512 quarters = _mm512_add_ps(a, _mm512_permute_ps(a, 0x4e));
    const __m512 sums = _mm512_add_ps(quarters, _mm512_permute_ps(quarters, 0xb1));
    const __m512i pick = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(pick, sums));
}

// P pairs of rows, C columns. `a` holds the rows' values eight at a time, pair by pair.
template <int P, int C>
void block_tile(const float *a, const float *x, std::size_t k, float *y, std::size_t ldy) {
    __m512 acc[C][P];
    for (auto &column : acc) {
        for (auto &v : column) {
            v = _mm512_setzero_ps();
        }
    }
    for (std::size_t i = 0; i < k; i += 8, a += P * 16) {
        __m512 pair[P];
        for (int p = 0; p < P; ++p) {
            pair[p] = _mm512_loadu_ps(a + p * 16);
        }
        for (int c = 0; c < C; ++c) {
            const __m512 b = _mm512_broadcast_f32x8(_mm256_loadu_ps(x + c * k + i));
            for (int p = 0; p < P; ++p) {
                acc[c][p] = _mm512_fmadd_ps(pair[p], b, acc[c][p]);
            }
        }
    }
    for (int c = 0; c < C; ++c) {
        if constexpr (P == 4) {
            _mm256_storeu_ps(y + c * ldy, sum_rows8(acc[c]));
        } else {
            _mm_storeu_ps(y + c * ldy, sum_rows4(acc[c]));
        }
    }
}

template <int P>
void block_columns(const float *a, const float *x, std::size_t k, std::size_t columns, float *y, std::size_t ldy) {
    switch (columns) {
        case 1: return block_tile<P, 1>(a, x, k, y, ldy);
        case 2: return block_tile<P, 2>(a, x, k, y, ldy);
        case 3: return block_tile<P, 3>(a, x, k, y, ldy);
        case 4: return block_tile<P, 4>(a, x, k, y, ldy);
        case 5: return block_tile<P, 5>(a, x, k, y, ldy);
        default: return block_tile<P, 6>(a, x, k, y, ldy);
    }
}

void pack_rows(const std::uint16_t *w, std::size_t rows, std::size_t k, float *a) {
    for (std::size_t i = 0; i < k; i += 8) {
        for (std::size_t r = 0; r < rows; ++r, a += 8) {
            _mm256_storeu_ps(a, load_f16(w + r * k + i));
        }
    }
}

void f16_block(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t columns, float *y,
               std::size_t ldy, float *scratch) {
    for (std::size_t r = 0; r < rows; r += 8) {
        pack_rows(w + r * k, std::min<std::size_t>(8, rows - r), k, scratch + r * k);
    }
    for (std::size_t c = 0; c < columns; c += 6) {
        const std::size_t some = std::min<std::size_t>(6, columns - c);
        std::size_t r = 0;
        for (; r + 8 <= rows; r += 8) {
            block_columns<4>(scratch + r * k, x + c * k, k, some, y + c * ldy + r, ldy);
        }
        if (r < rows) {
            block_columns<2>(scratch + r * k, x + c * k, k, some, y + c * ldy + r, ldy);
        }
    }
}

// The accumulator of a head of N * 16 values stays in registers.
template <int N>
void attend_cells_sized(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, float scale,
                        float *maximum, float *sum, float *out) {
    constexpr std::size_t d = N * 16;
    float m = -std::numeric_limits<float>::infinity(), s = 0.0f;
    __m512 acc[N];
    for (auto &v : acc) {
        v = _mm512_setzero_ps();
    }
    for (std::size_t block = begin; block < end; block += 64) {
        const std::size_t cells = std::min<std::size_t>(64, end - block);
        float score[64];
        f16_dot_rows(cache.k + block * d, cells, d, q, score);
        for (std::size_t c = 0; c < cells; ++c) {
            const float value = score[c] * scale;
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
    *maximum = m;
    *sum = s;
}

void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, float scale,
                  float *maximum, float *sum, float *out, float *scratch) {
    switch (cache.head_size) {
        case 64: return attend_cells_sized<4>(cache, begin, end, q, scale, maximum, sum, out);
        case 96: return attend_cells_sized<6>(cache, begin, end, q, scale, maximum, sum, out);
        case 128: return attend_cells_sized<8>(cache, begin, end, q, scale, maximum, sum, out);
        default: return avx2_kernels.attend_cells(cache, begin, end, q, scale, maximum, sum, out, scratch);
    }
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

#include "kernels/attend_tile.inc"

}  // namespace

const Kernels avx512_kernels = {
    .name = "avx512",
    .round_f16 = avx2::round_f16,
    .widen_f16 = avx2::widen_f16,
    .through_f16 = avx2::through_f16,
    .f16_dot_rows = f16_dot_rows,
    .f16_block = f16_block,
    .quantize_q8 = avx2::quantize_q8,
    .q1_0_rows = avx512::q1_0_rows,
    .q1_0_block = avx512::q1_0_block,
    .q1_0_block_scratch = avx512::q1_0_block_scratch,
    .q2_0_rows = avx512::q2_0_rows,
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
