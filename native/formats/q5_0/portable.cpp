#include "formats/blocks.h"
#include "formats/q5_0/q5_0.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 22;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        split_nibbles(block + 6, value);
        for (std::size_t i = 0; i < small_block; ++i) {
            value[i] = std::int8_t(value[i] + (block[2 + i / 8] >> (i % 8) & 1) * 16 - 16);
        }
    }
};

}  // namespace

constinit const WeightFormat q5_0_format = {
    .id = 6,
    .name = "Q5_0",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_0_activations,
    .widen = widen_blocks<Codec>,
    .choose = one_family,
    .products = {{.rows = product_of<Q8Column, portable::lanes_rows<Codec>>}},
};

}  // namespace bankml
