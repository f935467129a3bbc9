#include "formats/super_blocks.h"
#include "formats/tq1_0/tq1_0.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = tq1_0_bytes;
    static float scale(const std::uint8_t *block) { return half_at(block + 52); }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        decode_digits(block, 32, 5, value);
        decode_digits(block + 32, 16, 5, value + 160);
        decode_digits(block + 48, 4, 4, value + 240);
        for (std::size_t g = 0; g < groups; ++g) {
            scales[g] = 1;
        }
    }
    // Digit after digit of `n` bytes side by side.
    static void decode_digits(const std::uint8_t *from, std::size_t n, std::size_t digits, std::int8_t *value) {
        std::uint8_t power = 1;
        for (std::size_t digit = 0; digit < digits; ++digit, power = std::uint8_t(power * 3)) {
            for (std::size_t i = 0; i < n; ++i) {
                *value++ = top_digit(std::uint8_t(from[i] * power));
            }
        }
    }
    // Codes count from 0, weights from -1: two groups of activations a lane.
    static void adjust(const std::int16_t *, const std::int16_t *sums, std::int32_t *lane) {
        for (std::size_t l = 0; l < 8; ++l) {
            lane[l] -= sums[2 * l] + sums[2 * l + 1];
        }
    }
};

// dequantize_row_tq1_0
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

constinit const WeightFormat tq1_0_format = {
    .id = 34,
    .name = "TQ1_0",
    .block_weights = super_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_K_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8KColumn, portable::super_lanes_rows<Codec>>}},
};

}  // namespace bankml
