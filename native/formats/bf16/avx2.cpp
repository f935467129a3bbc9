// The BF16 products in AVX2.
#include "formats/bf16/bf16.h"

#include <cmath>

#include "formats/avx2_floats.h"
#include "kernels/bfloat.h"

namespace bankml::avx2 {
namespace {

struct Element {
    static constexpr std::size_t bytes = 2;
    static __m256 load(const std::uint8_t *p) {
        const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
    }
};

float dot(const std::uint8_t *w, std::size_t k, const float *x) {
    const std::size_t whole = k & ~std::size_t{31};
    double sum = double(sum_halves(dot_lanes<Element>(w, whole, x)));
    for (std::size_t i = whole; i < k; ++i) {
        sum += double(bfloat_to_float(block_scale(w + i * 2)) * x[i]);
    }
    return float(sum);
}

}  // namespace

void bf16_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
               std::size_t ldy, float *) {
    const float *columns = static_cast<const float *>(x);
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] = dot(w + r * k * Element::bytes, k, columns + c * k);
        }
    }
}

void bf16_gemm(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
               std::size_t ldy, float *scratch) {
    gemm<Element>(w, rows, k, static_cast<const float *>(x), n, y, ldy, scratch);
}

}  // namespace bankml::avx2
