// Products over blocks of 256 weights with q8_K activations, the definition. A codec has `bytes`, `scale(block)`, and
// `decode(block, value[256], scales[16])`: bytes, each group of 16 with a scale in integers.
#pragma once
#include <cmath>

#include "formats/blocks.h"

namespace bankml {

inline constexpr std::size_t super_block = 256, groups = 16, group_values = 16;

// The eight scales and eight minima of six bits that Q4_K and Q5_K pack into twelve bytes (get_scale_min_k4).
inline void unpack_scales(const std::uint8_t *packed, std::uint8_t *scales, std::uint8_t *minima) {
    for (std::size_t i = 0; i < 4; ++i) {
        scales[i] = packed[i] & 63;
        minima[i] = packed[i + 4] & 63;
        scales[i + 4] = std::uint8_t((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
        minima[i + 4] = std::uint8_t(packed[i + 8] >> 4 | (packed[i + 4] >> 6) << 4);
    }
}

// The lanes' sums of one block: lane l has values 4 l to 4 l + 3 of every 32, each group's times its scale.
inline void lane_sums(const std::int8_t *value, const std::int16_t *scales, const std::int8_t *q, std::int32_t *lane) {
    for (std::size_t l = 0; l < 8; ++l) {
        lane[l] = 0;
        for (std::size_t i = l * 4; i < super_block; i += 32) {
            std::int32_t four = 0;
            for (std::size_t j = i; j < i + 4; ++j) {
                four += value[j] * q[j];
            }
            lane[l] += scales[i / group_values] * four;
        }
    }
}

}  // namespace bankml
