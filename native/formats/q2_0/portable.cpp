// The definition of the Q2_0 product (ggml_vec_dot_q2_0_q8_0).
#include <cmath>
#include <vector>

#include "formats/q2_0/q2_0.h"
#include "kernels/half.h"

namespace bankml {
namespace {

// One chain of multiply-adds a row, two whole block sums a step.
void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    std::vector<std::uint8_t> row(k / q2_0_weights * q2_0_block_bytes);
    for (std::size_t r = 0; r < rows; ++r) {
        q2_0_layout.row(w, rows, row.size(), r, row.data());
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f;
            for (std::size_t b = 0; b < k / q2_0_weights; ++b) {
                const std::uint8_t *block = row.data() + b * q2_0_block_bytes;
                float part = 0.0f;
                for (std::size_t j = 0; j < 2; ++j) {
                    std::int32_t whole = 0;
                    for (std::size_t i = j * 32; i < j * 32 + 32; ++i) {
                        whole += ((block[2 + i / 4] >> (i % 4 * 2) & 3) - 1) * columns[c].q[b * q2_0_weights + i];
                    }
                    part = std::fma(columns[c].d[b * 2 + j], float(whole), part);
                }
                total = std::fma(half_to_float(block_scale(block)), part, total);
            }
            y[c * ldy + r] = total;
        }
    }
}

// dequantize_row_q2_0
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    for (std::size_t i = 0; i < columns; ++i) {
        const std::uint8_t *block = row + i / q2_0_weights * q2_0_block_bytes;
        const float scale = half_to_float(block_scale(block));
        const std::size_t at = i % q2_0_weights;
        y[i] = float((block[2 + at / 4] >> (at % 4 * 2) & 3) - 1) * scale;
    }
}

}  // namespace

constinit const WeightFormat q2_0_format = {
    .id = 42,
    .name = "Q2_0",
    .block_weights = q2_0_weights,
    .block_bytes = q2_0_block_bytes,
    .activation = &q8_0_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8Column, rows_product>}},
    .layout = &q2_0_layout,
};

}  // namespace bankml
