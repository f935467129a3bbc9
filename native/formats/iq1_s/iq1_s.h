// IQ1_S: an f16 scale; 32 low bytes of indices of eight values each; for each 32 weights a word of their high bits, a
// scale and the sign of the eighth. Activations in q8_K; lanes with one more chain for the eighths
// (ggml_vec_dot_iq1_s_q8_K), panels (iqp.cpp).
#pragma once
#include "formats/iq/iq1.h"

namespace bankml {

extern const WeightFormat iq1_s_format;

struct IQ1SCodec {
    static constexpr std::size_t bytes = 50;
    static constexpr bool one_chain = true;  // the eighths in one chain, else in eight lanes
    static std::uint16_t scale_bits(const std::uint8_t *block) { return block_scale(block); }
    static Iq1Part read_part(const std::uint8_t *block, std::size_t part) {
        const std::uint8_t *at = block + 2 + part * 4;
        const std::uint32_t word = word_at<std::uint16_t>(block + 34 + part * 2);
        const int scale = int(2 * (word >> 12 & 7) + 1);
        const bool minus = word >> 15;
        Iq1Part read{{}, {minus, minus, minus, minus}, {scale, scale}};
        for (std::size_t i = 0; i < 4; ++i) {
            read.groups[i] = iq1_grid[at[i] | (word >> (3 * i) & 7) << 8];
        }
        return read;
    }
};

namespace avx2 {
Q8KRows iq1_s_lanes_rows;
Q8KBlock iq1_s_panel_block;
BlockPlan iq1_s_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
