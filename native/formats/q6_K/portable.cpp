#include "formats/q6_K/q6_K.h"
#include "formats/super_blocks.h"

namespace bankml {
namespace {

// Values from 0 to 63 and their scales; 32 is taken off them elsewhere.
void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
    for (std::size_t i = 0; i < super_block; ++i) {
        const std::size_t half = i / 128, part = i % 128 / 32, at = i % 32;
        const std::uint8_t low = block[half * 64 + part % 2 * 32 + at], high = block[128 + half * 32 + at];
        value[i] = std::int8_t((low >> (part / 2 * 4) & 15) | (high >> (part * 2) & 3) << 4);
    }
    for (std::size_t g = 0; g < groups; ++g) {
        scales[g] = std::int8_t(block[192 + g]);
    }
}

void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * q6_K_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {};
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const std::uint8_t *block = w + b * q6_K_bytes;
                const std::int16_t *sums = columns[c].sums + b * q8_K_sums;
                std::int32_t sum[8];
                decode(block, value, scales);
                lane_sums(value, scales, columns[c].q + b * super_block, sum);
                const float d = columns[c].d[b] * half_at(block + 208);
                for (std::size_t l = 0; l < 8; ++l) {
                    // The 32 that every value is too large by, of two groups a lane.
                    sum[l] -= (sums[2 * l] * scales[2 * l] + sums[2 * l + 1] * scales[2 * l + 1]) * 32;
                    lane[l] = std::fma(d, float(sum[l]), lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

// dequantize_row_q6_K
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += q6_K_bytes, y += super_block) {
        decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            y[i] = half_at(row + 208) * float(scales[i / group_values]) * float(value[i] - 32);
        }
    }
}

}  // namespace

constinit const WeightFormat q6_K_format = {
    .id = 14,
    .name = "Q6_K",
    .block_weights = super_block,
    .block_bytes = q6_K_bytes,
    .activation = &q8_K_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8KColumn, rows_product>}},
};

}  // namespace bankml
