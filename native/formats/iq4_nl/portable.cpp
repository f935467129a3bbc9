#include "formats/blocks.h"
#include "formats/iq4_nl/iq4_nl.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 18;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        split_nibbles(block + 2, value);
        for (std::size_t i = 0; i < small_block; ++i) {
            value[i] = iq4_values[value[i]];
        }
    }
};

}  // namespace

constinit const WeightFormat iq4_nl_format = {
    .id = 20,
    .name = "IQ4_NL",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_0_activations,
    .widen = widen_blocks<Codec>,
    .choose = repacked_or<iq4_nl_chain, iq4_nl_pairs, iq4_nl_lanes>,
    .products = {{.rows = product_of<Q8Column, portable::chain_rows<Codec>>},
                 {.rows = product_of<Q8Column, portable::pairs_rows<Codec>>},
                 {.rows = product_of<Q8Column, portable::lanes_rows<Codec>>}},
};

}  // namespace bankml
