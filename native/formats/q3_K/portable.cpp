#include "formats/q3_K/q3_K.h"
#include "formats/super_blocks.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = q3_K_bytes;
    static float scale(const std::uint8_t *block) { return half_at(block + 108); }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        for (std::size_t i = 0; i < super_block; ++i) {
            const int low = block[32 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
            value[i] = std::int8_t(low - (block[i % 32] >> (i / 32) & 1 ? 0 : 4));
        }
        for (std::size_t g = 0; g < groups;
             ++g) {  // four bits, and two more of four scales in each of the last four bytes
            const int low = block[96 + g % 8] >> (g / 8 * 4) & 15, high = block[104 + g % 4] >> (g / 4 * 2) & 3;
            scales[g] = std::int16_t((low | high << 4) - 32);
        }
    }
};

// dequantize_row_q3_K
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += Codec::bytes, y += super_block) {
        Codec::decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            y[i] = Codec::scale(row) * float(scales[i / group_values]) * float(value[i]);
        }
    }
}

}  // namespace

constinit const WeightFormat q3_K_format = {
    .id = 11,
    .name = "Q3_K",
    .block_weights = super_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_K_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8KColumn, portable::super_lanes_rows<Codec>>}},
};

}  // namespace bankml
