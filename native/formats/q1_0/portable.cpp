// The definition of the Q1_0 product (ggml_vec_dot_q1_0_q8_0).
#include <cmath>
#include <vector>

#include "formats/q1_0/q1_0.h"
#include "kernels/half.h"
#include "kernels/lanes.h"

namespace bankml {
namespace {

// Eight lanes, each the sum of four neighbours of a block of 32, negated as i8 where the bit is 0 (so -128 stays -128);
// the four blocks' products are chained, then scaled, then summed as lanes.
void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    std::vector<std::uint8_t> row(k / q1_0_weights * q1_0_block_bytes);
    for (std::size_t r = 0; r < rows; ++r) {
        q1_0_layout.row(w, rows, row.size(), r, row.data());
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {};
            for (std::size_t b = 0; b < k / q1_0_weights; ++b) {
                const std::uint8_t *block = row.data() + b * q1_0_block_bytes;
                const float scale = half_to_float(block_scale(block));
                for (std::size_t l = 0; l < 8; ++l) {
                    float part = 0.0f;
                    for (std::size_t j = 0; j < 4; ++j) {
                        std::int32_t four = 0;
                        for (std::size_t i = j * 32 + l * 4; i < j * 32 + l * 4 + 4; ++i) {
                            const std::int8_t q = columns[c].q[b * q1_0_weights + i];
                            const bool positive = block[2 + i / 8] >> (i % 8) & 1;
                            four += positive ? q : std::int8_t(std::uint8_t(-std::int32_t(q)));
                        }
                        const float d = columns[c].d[b * 4 + j];
                        part = j == 0 ? d * float(four) : std::fma(d, float(four), part);
                    }
                    lane[l] = std::fma(scale, part, lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

// dequantize_row_q1_0
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    for (std::size_t i = 0; i < columns; ++i) {
        const std::uint8_t *block = row + i / q1_0_weights * q1_0_block_bytes;
        const float scale = half_to_float(block_scale(block));
        const std::size_t at = i % q1_0_weights;
        y[i] = block[2 + at / 8] >> (at % 8) & 1 ? scale : -scale;
    }
}

}  // namespace

constinit const WeightFormat q1_0_format = {
    .id = 41,
    .name = "Q1_0",
    .block_weights = q1_0_weights,
    .block_bytes = q1_0_block_bytes,
    .activation = &q8_0_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8Column, rows_product>}},
    .layout = &q1_0_layout,
};

}  // namespace bankml
