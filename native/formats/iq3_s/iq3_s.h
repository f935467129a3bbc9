// IQ3_S: an f16 scale; 64 low bytes of indices of four values each, their ninth bits, signs, and four bytes of two
// scales. Activations in q8_K; lanes and panels as IQ4_XS has them (ggml_vec_dot_iq3_s_q8_K, iqp.cpp).
#pragma once
#include "formats/iq/part.h"

namespace bankml {

extern const WeightFormat iq3_s_format;

struct IQ3SCodec {
    static constexpr std::size_t bytes = 110;
    static constexpr float factor = 1.0f;
    static IqPart read_part(const std::uint8_t *block, std::size_t part);
};

inline IqPart IQ3SCodec::read_part(const std::uint8_t *block, std::size_t part) {
    const std::uint8_t *at = block + 2 + part * 8;
    const std::uint32_t high = block[66 + part];
    const int scale = 2 * (block[106 + part / 2] >> (part % 2 * 4) & 15) + 1;
    IqPart read{{}, word_at<std::uint32_t>(block + 74 + part * 4), {scale, scale}};
    for (std::size_t i = 0; i < 4; ++i) {
        read.groups[i] = two_groups(iq3_s_grid[at[2 * i] | (high >> (2 * i) & 1) << 8],
                                    iq3_s_grid[at[2 * i + 1] | (high >> (2 * i + 1) & 1) << 8]);
    }
    return read;
}

namespace avx2 {
Q8KRows iq3_s_lanes_rows;
Q8KBlock iq3_s_panel_block;
BlockPlan iq3_s_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
