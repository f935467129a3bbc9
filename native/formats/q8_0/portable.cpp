#include "formats/blocks.h"
#include "formats/q8_0/q8_0.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 34;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static void decode(const std::uint8_t *block, std::int8_t *value) { std::memcpy(value, block + 2, small_block); }
};

}  // namespace

constinit const WeightFormat q8_0_format = {
    .id = 8,
    .name = "Q8_0",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_0_activations,
    .widen = widen_blocks<Codec>,
    .choose = one_family,
    .products = {{.rows = product_of<Q8Column, portable::lanes_rows<Codec>>}},
};

}  // namespace bankml
