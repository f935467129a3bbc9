#include "formats/blocks.h"
#include "formats/q4_0/q4_0.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 18;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        split_nibbles(block + 2, value);
        for (std::size_t i = 0; i < small_block; ++i) {
            value[i] = std::int8_t(value[i] - 8);
        }
    }
};

}  // namespace

constinit const WeightFormat q4_0_format = {
    .id = 2,
    .name = "Q4_0",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_0_activations,
    .widen = widen_blocks<Codec>,
    .choose = repacked_or<q4_0_chain, q4_0_lanes, q4_0_lanes>,
    .products = {{.rows = product_of<Q8Column, portable::chain_rows<Codec>>},
                 {.rows = product_of<Q8Column, portable::lanes_rows<Codec>>}},
};

}  // namespace bankml
