// IQ1_M: 32 low bytes of indices of eight values each; nibbles of their high bits and the sign of the eighth; four
// words of three-bit scales and a quarter of the f16 scale each. Activations in q8_K; lanes, and lanes for the eighths
// (ggml_vec_dot_iq1_m_q8_K), panels (iqp.cpp).
#pragma once
#include "formats/iq/iq1.h"

namespace bankml {

extern const WeightFormat iq1_m_format;

struct IQ1MCodec {
    static constexpr std::size_t bytes = 56;
    static constexpr bool one_chain = false;
    static std::uint16_t scale_bits(const std::uint8_t *block) {
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            bits |= std::uint32_t(word_at<std::uint16_t>(block + 48 + 2 * i) >> 12) << (4 * i);
        }
        return std::uint16_t(bits);
    }
    static Iq1Part read_part(const std::uint8_t *block, std::size_t part) {
        const std::uint32_t scales = word_at<std::uint16_t>(block + 48 + part / 2 * 2) >> (part % 2 * 6);
        Iq1Part read{{}, {}, {int(2 * (scales & 7) + 1), int(2 * (scales >> 3 & 7) + 1)}};
        for (std::size_t i = 0; i < 4; ++i) {
            const std::uint32_t nibble = block[32 + part * 2 + i / 2] >> (i % 2 * 4);
            read.groups[i] = iq1_grid[block[part * 4 + i] | (nibble & 7) << 8];
            read.minus[i] = nibble >> 3 & 1;
        }
        return read;
    }
};

namespace avx2 {
Q8KRows iq1_m_lanes_rows;
Q8KBlock iq1_m_panel_block;
BlockPlan iq1_m_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
