// The F16 products in AVX2.
#include "formats/f16/f16.h"
#include "kernels/avx2/f16_dot.h"

namespace bankml::avx2 {
namespace {

const std::uint16_t *halves(const std::uint8_t *w) { return reinterpret_cast<const std::uint16_t *>(w); }

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

}  // namespace

void f16_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
              std::size_t ldy, float *) {
    const float *columns = static_cast<const float *>(x);
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] = f16_dot(halves(w) + r * k, k, columns + c * k);
        }
    }
}

void f16_gemm(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
              std::size_t ldy, float *scratch) {
    const float *columns = static_cast<const float *>(x);
    for (std::size_t r = 0; r < rows; r += 4) {  // four rows interleaved, eight values at a time
        for (std::size_t i = 0; i < k; i += 8) {
            for (std::size_t j = 0; j < 4; ++j) {
                _mm256_storeu_ps(scratch + r * k + i * 4 + j * 8, load_f16(halves(w) + (r + j) * k + i));
            }
        }
    }
    for (std::size_t c = 0; c < n; c += 3) {
        for (std::size_t r = 0; r < rows; r += 4) {
            const float *a = scratch + r * k;
            float *out = y + c * ldy + r;
            switch (n - c) {
                case 1: block_tile<1>(a, columns + c * k, k, out, ldy); break;
                case 2: block_tile<2>(a, columns + c * k, k, out, ldy); break;
                default: block_tile<3>(a, columns + c * k, k, out, ldy);
            }
        }
    }
}

}  // namespace bankml::avx2
