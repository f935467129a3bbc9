// The F16 products in AVX-512: one 512-bit register carries two of the definition's eight-lane accumulators.
#include <algorithm>

#include "formats/f16/f16.h"
#include "kernels/avx512/vector.h"

namespace bankml::avx512 {
namespace {

// Accumulators 0 and 1 in `low`, 2 and 3 in `high`.
inline float finish_pairs(__m512 low, __m512 high) {
    const __m512 pair = _mm512_add_ps(low, high);
    return sum_neighbours(_mm256_add_ps(_mm512_extractf32x8_ps(pair, 1), _mm512_castps512_ps256(pair)));
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

}  // namespace

// One row after the other: a single stream of weights is what the hardware's prefetchers follow best. Two rows at once
// read memory at half the rate, and software prefetches only cost.
void f16_dots(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, float *y) {
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

namespace {

// R rows against C columns, each with the accumulators of a lone row: a weight is loaded once for all columns.
template <int R, int C>
void lone_tile(const std::uint16_t *w, std::size_t k, const float *x, float *y, std::size_t ldy) {
    __m512 low[R][C], high[R][C];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
            low[r][c] = high[r][c] = _mm512_setzero_ps();
        }
    }
    const std::size_t whole = k & ~std::size_t{31};
    for (std::size_t i = 0; i < whole; i += 32) {
        __m512 first[R], second[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            first[r] = load16_f16(w + r * k + i);
            second[r] = load16_f16(w + r * k + i + 16);
        }
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
            const __m512 a = _mm512_loadu_ps(x + c * k + i), b = _mm512_loadu_ps(x + c * k + i + 16);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) {
                low[r][c] = _mm512_fmadd_ps(first[r], a, low[r][c]);
                high[r][c] = _mm512_fmadd_ps(second[r], b, high[r][c]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
            y[c * ldy + r] = finish_dot(finish_pairs(low[r][c], high[r][c]), w + r * k, x + c * k, whole, k);
        }
    }
}

constexpr std::size_t tile_columns = 4;  // and two rows: their accumulators stay in registers

template <int R>
void lone_tiles(const std::uint16_t *w, std::size_t k, const float *x, std::size_t n, float *y, std::size_t ldy) {
    for (std::size_t c = 0; c < n; c += tile_columns, x += tile_columns * k, y += tile_columns * ldy) {
        switch (n - c) {
            case 1: lone_tile<R, 1>(w, k, x, y, ldy); break;
            case 2: lone_tile<R, 2>(w, k, x, y, ldy); break;
            case 3: lone_tile<R, 3>(w, k, x, y, ldy); break;
            default: lone_tile<R, tile_columns>(w, k, x, y, ldy);
        }
    }
}

}  // namespace

// One row at a time for a few columns, which wait for memory; pairs of rows for more, which wait for loads.
void f16_rows(const std::uint8_t *weights, std::size_t rows, std::size_t k, const void *activations, std::size_t n,
              float *y, std::size_t ldy, float *) {
    const std::uint16_t *w = reinterpret_cast<const std::uint16_t *>(weights);
    const float *x = static_cast<const float *>(activations);
    if (n == 1) {
        return f16_dots(w, rows, k, x, y);
    }
    std::size_t r = 0;
    for (; n > tile_columns && r + 2 <= rows; r += 2) {
        lone_tiles<2>(w + r * k, k, x, n, y + r, ldy);
    }
    for (; r < rows; ++r) {
        lone_tiles<1>(w + r * k, k, x, n, y + r, ldy);
    }
}

void f16_gemm(const std::uint8_t *weights, std::size_t rows, std::size_t k, const void *activations,
              std::size_t columns, float *y, std::size_t ldy, float *scratch) {
    const std::uint16_t *w = reinterpret_cast<const std::uint16_t *>(weights);
    const float *x = static_cast<const float *>(activations);
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

}  // namespace bankml::avx512
