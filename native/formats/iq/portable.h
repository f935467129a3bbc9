// The definition for IQ2 and IQ3 types. A codec has `bytes`, `factor`, a power of two, and `read_part(block, part)`.
#pragma once
#include "formats/iq/part.h"
#include "formats/super_blocks.h"

namespace bankml {

template <class Codec>
struct IqCodec {
    static constexpr std::size_t bytes = Codec::bytes;
    // What panels and look-ups use has the factor in it; the products in lanes multiply with it at their end.
    static float scale(const std::uint8_t *block) { return half_at(block) * Codec::factor; }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        for (std::size_t part = 0; part < 8; ++part) {
            const IqPart read = Codec::read_part(block, part);
            for (std::size_t i = 0; i < 32; ++i) {
                const int size = std::int8_t(read.groups[i / 8] >> (i % 8 * 8));
                value[part * 32 + i] = std::int8_t(read.signs >> i & 1 ? -size : size);
            }
            scales[2 * part] = std::int16_t(read.scales[0]);
            scales[2 * part + 1] = std::int16_t(read.scales[1]);
        }
    }
};

namespace portable {

// ggml_vec_dot_iq2_xxs_q8_K and its like: eight lanes, the factor at the end.
template <class Codec>
void iq_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                   float *y, std::size_t ldy) {
    struct Unscaled : IqCodec<Codec> {
        static float scale(const std::uint8_t *block) { return half_at(block); }
    };
    super_lanes_rows<Unscaled>(w, rows, k, columns, n, y, ldy);
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] *= Codec::factor;
        }
    }
}

}  // namespace portable

// dequantize_row_iq2_xxs and its like: every product is exact.
template <class Codec>
void widen_iq(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += Codec::bytes, y += super_block) {
        IqCodec<Codec>::decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            y[i] = IqCodec<Codec>::scale(row) * float(scales[i / group_values]) * float(value[i]);
        }
    }
}

}  // namespace bankml
