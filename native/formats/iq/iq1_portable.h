// The definition for IQ1_S and IQ1_M.
#pragma once
#include "formats/iq/iq1.h"
#include "formats/super_blocks.h"

namespace bankml {

// Eight times the weights: 8 * value +- 1.
template <class Codec>
struct Iq1Codec {
    static constexpr std::size_t bytes = Codec::bytes;
    static float scale(const std::uint8_t *block) { return half_to_float(Codec::scale_bits(block)) * iq1_eighth; }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        std::int8_t eighths[super_block];
        split(block, value, eighths, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            value[i] = std::int8_t(8 * value[i] + eighths[i]);
        }
    }
    // The values from -1 to 1, and the sign of each one's eighth.
    static void split(const std::uint8_t *block, std::int8_t *value, std::int8_t *eighths, std::int16_t *scales) {
        for (std::size_t part = 0; part < 8; ++part) {
            const Iq1Part read = Codec::read_part(block, part);
            for (std::size_t i = 0; i < 32; ++i) {
                value[part * 32 + i] = std::int8_t(read.groups[i / 8] >> (i % 8 * 8));
                eighths[part * 32 + i] = read.minus[i / 8] ? -1 : 1;
            }
            scales[2 * part] = std::int16_t(read.scales[0]);
            scales[2 * part + 1] = std::int16_t(read.scales[1]);
        }
    }
};

namespace portable {

// Eight lanes of the values, and the eighths apart: in one chain of whole sums, or in eight lanes of their own.
template <class Codec>
void iq1_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                    float *y, std::size_t ldy) {
    std::int8_t value[super_block], eighths[super_block];
    std::int16_t scales[groups];
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {}, eighth_lane[8] = {}, chain = 0.0f;
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                const std::int8_t *q = columns[c].q + b * super_block;
                const float d = columns[c].d[b] * half_to_float(Codec::scale_bits(block));
                std::int32_t sum[8], eighth_sum[8], whole = 0;
                Iq1Codec<Codec>::split(block, value, eighths, scales);
                lane_sums(value, scales, q, sum);
                lane_sums(eighths, scales, q, eighth_sum);
                for (std::size_t l = 0; l < 8; ++l) {
                    lane[l] = std::fma(d, float(sum[l]), lane[l]);
                    eighth_lane[l] = std::fma(d, float(eighth_sum[l]), eighth_lane[l]);
                    whole += eighth_sum[l];
                }
                chain = std::fma(d, float(whole), chain);
            }
            y[c * ldy + r] = std::fma(iq1_eighth, Codec::one_chain ? chain : sum_lanes(eighth_lane), sum_lanes(lane));
        }
    }
}

}  // namespace portable

// dequantize_row_iq1_s, dequantize_row_iq1_m: every product is exact.
template <class Codec>
void widen_iq1(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += Codec::bytes, y += super_block) {
        Iq1Codec<Codec>::decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            y[i] = Iq1Codec<Codec>::scale(row) * float(scales[i / group_values]) * float(value[i]);
        }
    }
}

}  // namespace bankml
