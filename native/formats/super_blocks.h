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

namespace portable {

// Eight lanes, one fused multiply-add a block and lane. A codec has `decode(block, value[256], scales[16])`,
// `scale(block)`, and may have `adjust(block, sums, lane)`, which takes from the lanes what is in the activations' sums
// alone.
template <class Codec>
void super_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {};
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                std::int32_t sum[8];
                Codec::decode(block, value, scales);
                lane_sums(value, scales, columns[c].q + b * super_block, sum);
                if constexpr (requires { Codec::adjust(scales, columns[c].sums, sum); }) {
                    Codec::adjust(scales, columns[c].sums + b * q8_K_sums, sum);
                }
                const float d = columns[c].d[b] * Codec::scale(block);
                for (std::size_t l = 0; l < 8; ++l) {
                    lane[l] = std::fma(d, float(sum[l]), lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

// One chain a row, a multiply-add of a block's whole sum: the panels of iqp.cpp (iqp_gemv_8x8_q8_K, iqp_gemm_8x8_q8_K).
template <class Codec>
void panel_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                float *y, std::size_t ldy) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f;
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                std::int32_t sum[8];
                Codec::decode(block, value, scales);
                lane_sums(value, scales, columns[c].q + b * super_block, sum);
                std::int32_t all = 0;
                for (const std::int32_t one : sum) {
                    all += one;
                }
                total = std::fma(float(all), Codec::scale(block) * columns[c].d[b], total);
            }
            y[c * ldy + r] = total;
        }
    }
}

}  // namespace portable

}  // namespace bankml
