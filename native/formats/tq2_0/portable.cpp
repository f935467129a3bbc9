#include "formats/super_blocks.h"
#include "formats/tq2_0/tq2_0.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = tq2_0_bytes;
    static float scale(const std::uint8_t *block) { return half_at(block + 64); }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        for (std::size_t i = 0; i < super_block; ++i) {
            value[i] = std::int8_t(block[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3);
        }
        for (std::size_t g = 0; g < groups; ++g) {
            scales[g] = 1;
        }
    }
    // Codes count from 0, weights from -1: two groups of activations a lane.
    static void adjust(const std::int16_t *, const std::int16_t *sums, std::int32_t *lane) {
        for (std::size_t l = 0; l < 8; ++l) {
            lane[l] -= sums[2 * l] + sums[2 * l + 1];
        }
    }
};

// dequantize_row_tq2_0
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += Codec::bytes, y += super_block) {
        Codec::decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            y[i] = float(value[i] - 1) * Codec::scale(row);
        }
    }
}

}  // namespace

constinit const WeightFormat tq2_0_format = {
    .id = 35,
    .name = "TQ2_0",
    .block_weights = super_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_K_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8KColumn, portable::super_lanes_rows<Codec>>}},
};

}  // namespace bankml
