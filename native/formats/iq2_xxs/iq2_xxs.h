// IQ2_XXS: an f16 scale; for each 32 weights four indices of eight values, and a word of four times seven signs and a
// scale. Activations in q8_K; lanes and panels as IQ4_XS has them (ggml_vec_dot_iq2_xxs_q8_K, iqp.cpp).
#pragma once
#include "formats/iq/part.h"

namespace bankml {

extern const WeightFormat iq2_xxs_format;

struct IQ2XXSCodec {
    static constexpr std::size_t bytes = 66;
    static constexpr float factor = 0.125f;
    static IqPart read_part(const std::uint8_t *block, std::size_t part);
};

inline IqPart IQ2XXSCodec::read_part(const std::uint8_t *block, std::size_t part) {
    const std::uint8_t *at = block + 2 + part * 8;
    const std::uint32_t word = word_at<std::uint32_t>(at + 4);
    const int scale = int(2 * (word >> 28) + 1);
    return {{iq2_xxs_grid[at[0]], iq2_xxs_grid[at[1]], iq2_xxs_grid[at[2]], iq2_xxs_grid[at[3]]},
            even_sign_bytes(word),
            {scale, scale}};
}

namespace avx2 {
Q8KRows iq2_xxs_lanes_rows;
Q8KBlock iq2_xxs_panel_block;
BlockPlan iq2_xxs_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
