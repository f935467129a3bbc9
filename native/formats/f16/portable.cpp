// The definition of the F16 products.
#include <cmath>

#include "formats/f16/f16.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/lanes.h"

namespace bankml {
namespace portable {

// Element i of a step of 32 belongs to accumulator i/8, lane i%8. Accumulators are added (0+2)+(1+3), then the halves
// of the eight lanes, then neighbours twice. What is left of k is multiplied in float and added in double.
float f16_dot(const std::uint16_t *w, std::size_t k, const float *x) {
    const std::size_t whole = k & ~std::size_t{31};
    float acc[32] = {};
    for (std::size_t i = 0; i < whole; ++i) {
        acc[i % 32] = std::fma(half_to_float(w[i]), x[i], acc[i % 32]);
    }
    float lane[8];
    for (int i = 0; i < 8; ++i) {
        lane[i] = (acc[8 + i] + acc[24 + i]) + (acc[i] + acc[16 + i]);
    }
    const float t0 = lane[4] + lane[0], t1 = lane[5] + lane[1], t2 = lane[6] + lane[2], t3 = lane[7] + lane[3];
    double sum = double((t0 + t1) + (t2 + t3));
    for (std::size_t i = whole; i < k; ++i) {
        sum += double(half_to_float(w[i]) * x[i]);
    }
    return float(sum);
}

}  // namespace portable

namespace {

const std::uint16_t *halves(const std::uint8_t *w) { return reinterpret_cast<const std::uint16_t *>(w); }

// ggml_vec_dot_f16
void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t n, float *y,
                  std::size_t ldy) {
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] = portable::f16_dot(halves(w) + r * k, k, x + c * k);
        }
    }
}

// tinyBLAS<8, __m256, __m256, ggml_fp16_t>: one accumulator of eight lanes. k % 8 == 0.
void gemm_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t n, float *y,
                  std::size_t ldy) {
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            float lane[8] = {};
            for (std::size_t i = 0; i < k; ++i) {
                lane[i % 8] = std::fma(half_to_float(halves(w)[r * k + i]), x[c * k + i], lane[i % 8]);
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

void widen(const std::uint8_t *row, std::size_t columns, float *y) { kernels().f16_to_f32(columns, halves(row), y); }

Choice choose(std::size_t rows, std::size_t columns, std::size_t span) {
    const bool gemm = span >= 2 && rows % 4 == 0 && columns % 8 == 0;
    return {gemm ? f16_gemm_family : f16_dot_family, 0, 0};
}

}  // namespace

constinit const WeightFormat f16_format = {
    .id = 1,
    .name = "F16",
    .block_weights = 1,
    .block_bytes = 2,
    .activation = &f16_activations,
    .widen = widen,
    .choose = choose,
    .products = {{.rows = product_of<float, rows_product>}, {.rows = product_of<float, gemm_product>}},
};

}  // namespace bankml
