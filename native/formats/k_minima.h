// Blocks of Q4_K and Q5_K: values without sign, each 32 with a scale and a minimum of six bits.
#pragma once
#include "formats/super_blocks.h"

namespace bankml {

template <class Codec>
struct MinimaBlock {
    std::int8_t value[super_block];
    std::int16_t scales[groups];  // each of the eight twice
    std::uint8_t minima[8];
    float d, dmin;

    explicit MinimaBlock(const std::uint8_t *block) : d(half_at(block)), dmin(half_at(block + 2)) {
        std::uint8_t packed[8];
        unpack_scales(block + 4, packed, minima);
        for (std::size_t g = 0; g < groups; ++g) {
            scales[g] = packed[g / 2];
        }
        Codec::decode(block, value);
    }

    void lanes(const std::int8_t *q, std::int32_t *lane) const { lane_sums(value, scales, q, lane); }

    // The sums of 32 activations times their minimum.
    std::int32_t minimum_sum(const std::int16_t *sums, std::size_t part) const {
        return minima[part] * (sums[2 * part] + sums[2 * part + 1]);
    }
    // Lane l of four has parts 2 l and 2 l + 1.
    void minima_sums(const std::int16_t *sums, std::int32_t *lane) const {
        for (std::size_t l = 0; l < 4; ++l) {
            lane[l] = minimum_sum(sums, 2 * l) + minimum_sum(sums, 2 * l + 1);
        }
    }
    // The sum of part's 32 products times their scale.
    std::int32_t part_sum(const std::int8_t *q, std::size_t part) const {
        std::int32_t sum = 0;
        for (std::size_t i = part * 32; i < part * 32 + 32; ++i) {
            sum += value[i] * q[i];
        }
        return scales[2 * part] * sum;
    }
};

// dequantize_row_q4_K, dequantize_row_q5_K
template <class Codec>
void widen_minima_blocks(const std::uint8_t *row, std::size_t columns, float *y) {
    for (std::size_t b = 0; b < columns / super_block; ++b, row += Codec::bytes, y += super_block) {
        const MinimaBlock<Codec> block(row);
        for (std::size_t i = 0; i < super_block; ++i) {
            const float scale = block.d * float(block.scales[i / group_values]);
            const float minimum = block.dmin * float(block.minima[i / 32]);
            y[i] = scale * float(block.value[i]) - minimum;
        }
    }
}

}  // namespace bankml
