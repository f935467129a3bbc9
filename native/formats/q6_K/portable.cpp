#include "formats/q6_K/q6_K.h"
#include "formats/super_blocks.h"

namespace bankml {
namespace {

// Values from 0 to 63 and their scales; 32 is taken off them elsewhere.
struct Codec {
    static constexpr std::size_t bytes = q6_K_bytes;
    static float scale(const std::uint8_t *block) { return half_at(block + 208); }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        for (std::size_t i = 0; i < super_block; ++i) {
            const std::size_t half = i / 128, part = i % 128 / 32, at = i % 32;
            const std::uint8_t low = block[half * 64 + part % 2 * 32 + at], high = block[128 + half * 32 + at];
            value[i] = std::int8_t((low >> (part / 2 * 4) & 15) | (high >> (part * 2) & 3) << 4);
        }
        for (std::size_t g = 0; g < groups; ++g) {
            scales[g] = std::int8_t(block[192 + g]);
        }
    }
    // The 32 that every value is too large by, of two groups a lane.
    static void adjust(const std::int16_t *scales, const std::int16_t *sums, std::int32_t *lane) {
        for (std::size_t l = 0; l < 8; ++l) {
            lane[l] -= (sums[2 * l] * scales[2 * l] + sums[2 * l + 1] * scales[2 * l + 1]) * 32;
        }
    }
};

// dequantize_row_q6_K
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += q6_K_bytes, y += super_block) {
        Codec::decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            y[i] = Codec::scale(row) * float(scales[i / group_values]) * float(value[i] - 32);
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
    .products = {{.rows = product_of<Q8KColumn, portable::super_lanes_rows<Codec>>}},
};

}  // namespace bankml
