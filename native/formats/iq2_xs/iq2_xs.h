// IQ2_XS: an f16 scale; for each eight weights an index of nine bits and seven signs; eight bytes of two scales.
// Activations in q8_K; lanes and panels as IQ4_XS has them (ggml_vec_dot_iq2_xs_q8_K, iqp.cpp).
#pragma once
#include "formats/iq/part.h"

namespace bankml {

extern const WeightFormat iq2_xs_format;

struct IQ2XSCodec {
    static constexpr std::size_t bytes = 74;
    static constexpr float factor = 0.125f;
    static IqPart read_part(const std::uint8_t *block, std::size_t part);
};

inline IqPart IQ2XSCodec::read_part(const std::uint8_t *block, std::size_t part) {
    IqPart read{};
    std::uint32_t sevens = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const std::uint16_t word = word_at<std::uint16_t>(block + 2 + part * 8 + i * 2);
        read.groups[i] = iq2_xs_grid[word & 511];
        sevens |= std::uint32_t(word >> 9) << (7 * i);
    }
    read.signs = even_sign_bytes(sevens);
    read.scales[0] = 2 * (block[66 + part] & 15) + 1;
    read.scales[1] = 2 * (block[66 + part] >> 4) + 1;
    return read;
}

namespace avx2 {
Q8KRows iq2_xs_lanes_rows;
Q8KBlock iq2_xs_panel_block;
BlockPlan iq2_xs_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
