#include "formats/blocks.h"
#include "formats/q5_1/q5_1.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 24;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static float minimum(const std::uint8_t *block) { return half_at(block + 2); }
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        split_nibbles(block + 8, value);
        for (std::size_t i = 0; i < small_block; ++i) {
            value[i] = std::int8_t(value[i] + (block[4 + i / 8] >> (i % 8) & 1) * 16);
        }
    }
};

}  // namespace

constinit const WeightFormat q5_1_format = {
    .id = 7,
    .name = "Q5_1",
    .block_weights = small_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_1_activations,
    .widen = widen_blocks<Codec>,
    .choose = one_family,
    .products = {{.rows = product_of<Q8_1Column, portable::minimum_rows<Codec>>}},
};

}  // namespace bankml
