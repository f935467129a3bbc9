// The F16 products in AVX2.
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
    gemm<Element>(w, rows, k, static_cast<const float *>(x), n, y, ldy, scratch);
}

}  // namespace bankml::avx2
