// IQ4_XS: an f16 scale, eight six-bit scales, and 128 bytes of nibbles that index 16 values, for 256 weights.
// Activations in q8_K. Eight rows of activations and more of one batch meet a matrix of a multiple of eight rows in a
// panel (iqp.cpp), one chain a row; all else is summed in lanes (ggml_vec_dot_iq4_xs_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat iq4_xs_format;
inline constexpr std::size_t iq4_xs_bytes = 136;

namespace avx2 {
Q8KRows iq4_xs_lanes_rows;
Q8KBlock iq4_xs_panel_block;
BlockPlan iq4_xs_panel_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
