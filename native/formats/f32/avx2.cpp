// The F32 products in AVX2.
#include "formats/f32/f32.h"

#include <cmath>

#include "formats/avx2_floats.h"
#include "kernels/bfloat.h"

namespace bankml::avx2 {
namespace {

struct Element {
    static constexpr std::size_t bytes = 4;
    static __m256 load(const std::uint8_t *p) { return _mm256_loadu_ps(reinterpret_cast<const float *>(p)); }
};

float dot(const std::uint8_t *w, std::size_t k, const float *x) { return sum_neighbours(dot_lanes<Element>(w, k, x)); }

}  // namespace

void f32_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
              std::size_t ldy, float *) {
    const float *columns = static_cast<const float *>(x);
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] = dot(w + r * k * Element::bytes, k, columns + c * k);
        }
    }
}

void f32_gemm(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
              std::size_t ldy, float *scratch) {
    gemm<Element>(w, rows, k, static_cast<const float *>(x), n, y, ldy, scratch);
}

}  // namespace bankml::avx2
