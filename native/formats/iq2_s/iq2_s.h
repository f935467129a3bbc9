// IQ2_S: an f16 scale; low bytes of the indices of eight values each, signs, their two high bits, and eight bytes of
// two scales. Activations in q8_K; lanes and panels as IQ4_XS has them (ggml_vec_dot_iq2_s_q8_K, iqp.cpp).
#pragma once
#include "formats/iq/part.h"

namespace bankml {

extern const WeightFormat iq2_s_format;

struct IQ2SCodec {
    static constexpr std::size_t bytes = 82;
    static constexpr float factor = 0.125f;
    static IqPart read_part(const std::uint8_t *block, std::size_t part);
};

inline IqPart IQ2SCodec::read_part(const std::uint8_t *block, std::size_t part) {
    IqPart read{};
    const std::uint32_t high = block[66 + part];
    for (std::size_t i = 0; i < 4; ++i) {
        read.groups[i] = iq2_s_grid[block[2 + part * 4 + i] | (high >> (2 * i) & 3) << 8];
    }
    read.signs = word_at<std::uint32_t>(block + 34 + part * 4);
    read.scales[0] = 2 * (block[74 + part] & 15) + 1;
    read.scales[1] = 2 * (block[74 + part] >> 4) + 1;
    return read;
}

namespace avx2 {
Q8KRows iq2_s_lanes_rows;
Q8KBlock iq2_s_panel_block;
BlockPlan iq2_s_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
