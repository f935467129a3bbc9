// IQ3_XXS: an f16 scale; 64 indices of four values each; for each 32 weights a word of four times seven signs and a
// scale. Activations in q8_K; lanes and panels as IQ4_XS has them (ggml_vec_dot_iq3_xxs_q8_K, iqp.cpp).
#pragma once
#include "formats/iq/part.h"

namespace bankml {

extern const WeightFormat iq3_xxs_format;

struct IQ3XXSCodec {
    static constexpr std::size_t bytes = 98;
    static constexpr float factor = 0.25f;
    static IqPart read_part(const std::uint8_t *block, std::size_t part);
};

inline IqPart IQ3XXSCodec::read_part(const std::uint8_t *block, std::size_t part) {
    const std::uint8_t *at = block + 2 + part * 8;
    const std::uint32_t word = word_at<std::uint32_t>(block + 66 + part * 4);
    const int scale = int(2 * (word >> 28) + 1);
    IqPart read{{}, even_sign_bytes(word), {scale, scale}};
    for (std::size_t i = 0; i < 4; ++i) {
        read.groups[i] = two_groups(iq3_xxs_grid[at[2 * i]], iq3_xxs_grid[at[2 * i + 1]]);
    }
    return read;
}

namespace avx2 {
Q8KRows iq3_xxs_lanes_rows;
Q8KBlock iq3_xxs_panel_block;
BlockPlan iq3_xxs_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
