// Q4_0: an f16 scale and 16 bytes of nibbles, value - 8, for 32 weights. Activations in q8_0. The reference repacks a
// matrix whose rows are a multiple of eight and then sums in one chain a row; other matrices it sums in eight lanes.
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q4_0_format;
inline constexpr std::size_t q4_0_chain = 0, q4_0_lanes = 1;  // families

namespace avx2 {
Q8Rows q4_0_chain_rows, q4_0_lanes_rows;
Q8Block q4_0_chain_block;
BlockPlan q4_0_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
