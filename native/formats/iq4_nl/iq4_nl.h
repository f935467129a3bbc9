// IQ4_NL: an f16 scale and 16 bytes of nibbles that index 16 values, for 32 weights. Activations in q8_0. Repacked
// matrices (a multiple of eight rows) are summed in one chain a row; others in lanes: pairs of blocks where a row of
// activations is alone (ggml_vec_dot_iq4_nl_q8_0), else one block after the other (tinyBLAS_Q0_AVX).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat iq4_nl_format;
inline constexpr std::size_t iq4_nl_chain = 0, iq4_nl_pairs = 1, iq4_nl_lanes = 2;  // families

namespace avx2 {
Q8Rows iq4_nl_chain_rows, iq4_nl_pairs_rows, iq4_nl_lanes_rows;
Q8Block iq4_nl_chain_block;
BlockPlan iq4_nl_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
