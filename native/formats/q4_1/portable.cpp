#include "formats/blocks.h"
#include "formats/q4_1/q4_1.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 20;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static float minimum(const std::uint8_t *block) { return half_at(block + 2); }
    static void decode(const std::uint8_t *block, std::int8_t *value) { split_nibbles(block + 4, value); }
};

}  // namespace

constinit const WeightFormat q4_1_format = {
    .id = 3,
    .name = "Q4_1",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_1_activations,
    .widen = widen_blocks<Codec>,
    .choose = one_family,
    .products = {{.rows = product_of<Q8_1Column, portable::minimum_rows<Codec>>}},
};

}  // namespace bankml
