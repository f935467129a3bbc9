// MXFP4: an exponent and 16 bytes of nibbles that index 16 values (of E2M1, twice), for 32 weights. Activations in
// q8_0. Repacked matrices (a multiple of eight rows) are summed in one chain a row; others in lanes of pairs of blocks
// (ggml_vec_dot_mxfp4_q8_0).
#pragma once
#include <bit>

#include "formats/format.h"

namespace bankml {

extern const WeightFormat mxfp4_format;
inline constexpr std::size_t mxfp4_chain = 0, mxfp4_pairs = 1;  // families

inline constexpr std::int8_t mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of 2^(e - 127): the values count halves.
inline float mxfp4_scale(std::uint8_t e) {
    return std::bit_cast<float>(e < 2 ? 0x00200000u << e : std::uint32_t(e - 1) << 23);
}

namespace avx2 {
Q8Rows mxfp4_chain_rows, mxfp4_pairs_rows;
Q8Block mxfp4_chain_block;
BlockPlan mxfp4_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
