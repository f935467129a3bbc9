#include "formats/blocks.h"
#include "formats/mxfp4/mxfp4.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 17;
    static float scale(const std::uint8_t *block) { return mxfp4_scale(block[0]); }
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        split_nibbles(block + 1, value);
        for (std::size_t i = 0; i < small_block; ++i) {
            value[i] = mxfp4_values[value[i]];
        }
    }
};

}  // namespace

constinit const WeightFormat mxfp4_format = {
    .id = 39,
    .name = "MXFP4",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_0_activations,
    .widen = widen_blocks<Codec>,
    .choose = repacked_or<mxfp4_chain, mxfp4_pairs, mxfp4_pairs>,
    .products = {{.rows = product_of<Q8Column, portable::chain_rows<Codec>>},
                 {.rows = product_of<Q8Column, portable::pairs_rows<Codec>>}},
};

}  // namespace bankml
