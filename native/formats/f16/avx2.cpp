// The F16 products in AVX2.
#include <cstring>

#include "formats/avx2_floats.h"
#include "formats/f16/f16.h"
#include "kernels/avx2/f16_dot.h"

namespace bankml::avx2 {
namespace {

const std::uint16_t *halves(const std::uint8_t *w) { return reinterpret_cast<const std::uint16_t *>(w); }

struct Element {
    static constexpr std::size_t bytes = 2;
    static __m256 load(const std::uint8_t *p) { return load_f16(halves(p)); }
};

// R rows against C columns, each with the four accumulators of f16_dot. One accumulator after the other, so that R * C
// of them stay in registers: a pass reads a quarter of the values, which the first pass has brought into the cache.
template <int R, int C>
void lone_tile(const std::uint16_t *w, std::size_t k, const float *x, float *y, std::size_t ldy) {
    const std::size_t whole = k & ~std::size_t{31};
    __m256 sums[4][R][C];
    for (std::size_t part = 0; part < 4; ++part) {
        __m256 acc[R][C];
        for (auto &row : acc) {
            for (__m256 &one : row) {
                one = _mm256_setzero_ps();
            }
        }
        for (std::size_t i = part * 8; i < whole; i += 32) {
            __m256 column[C];
            for (int c = 0; c < C; ++c) {
                column[c] = _mm256_loadu_ps(x + c * k + i);
            }
            for (int r = 0; r < R; ++r) {
                const __m256 weights = load_f16(w + r * k + i);
                for (int c = 0; c < C; ++c) {
                    acc[r][c] = _mm256_fmadd_ps(weights, column[c], acc[r][c]);
                }
            }
        }
        std::memcpy(sums[part], acc, sizeof acc);
    }
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) {
            const __m256 lanes =
                _mm256_add_ps(_mm256_add_ps(sums[1][r][c], sums[3][r][c]), _mm256_add_ps(sums[0][r][c], sums[2][r][c]));
            y[c * ldy + r] = finish_dot(sum_neighbours(lanes), w + r * k, x + c * k, whole, k);
        }
    }
}

template <int R>
void lone_tiles(const std::uint16_t *w, std::size_t k, const float *x, std::size_t n, float *y, std::size_t ldy) {
    std::size_t c = 0;
    for (; c + 3 <= n; c += 3) {
        lone_tile<R, 3>(w, k, x + c * k, y + c * ldy, ldy);
    }
    if (n - c == 2) {
        lone_tile<R, 2>(w, k, x + c * k, y + c * ldy, ldy);
    } else if (n - c == 1) {
        lone_tile<R, 1>(w, k, x + c * k, y + c * ldy, ldy);
    }
}

}  // namespace

void f16_rows(const std::uint8_t *weights, std::size_t rows, std::size_t k, const void *activations, std::size_t n,
              float *y, std::size_t ldy, float *) {
    const std::uint16_t *w = halves(weights);
    const float *x = static_cast<const float *>(activations);
    if (n == 1) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[r] = f16_dot(w + r * k, k, x);
        }
        return;
    }
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        lone_tiles<4>(w + r * k, k, x, n, y + r, ldy);
    }
    for (; r < rows; ++r) {
        lone_tiles<1>(w + r * k, k, x, n, y + r, ldy);
    }
}

void f16_gemm(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
              std::size_t ldy, float *scratch) {
    gemm<Element>(w, rows, k, static_cast<const float *>(x), n, y, ldy, scratch);
}

}  // namespace bankml::avx2
