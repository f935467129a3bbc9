#include "formats/iq4_xs/iq4_xs.h"
#include "formats/super_blocks.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = iq4_xs_bytes;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        for (std::size_t part = 0; part < 8; ++part) {
            std::int8_t *to = value + part * 32;
            split_nibbles(block + 8 + part * 16, to);
            for (std::size_t i = 0; i < 32; ++i) {
                to[i] = iq4_values[to[i]];
            }
            const int low = block[4 + part / 2] >> (part % 2 * 4) & 15, high = block_scale(block + 2) >> (part * 2) & 3;
            scales[2 * part] = scales[2 * part + 1] = std::int16_t((low | high << 4) - 32);
        }
    }
};

// dequantize_row_iq4_xs
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

constinit const WeightFormat iq4_xs_format = {
    .id = 23,
    .name = "IQ4_XS",
    .block_weights = super_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_K_activations,
    .widen = widen,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::super_lanes_rows<Codec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<Codec>>}},
};

}  // namespace bankml
