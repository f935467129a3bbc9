// Q2_0: an f16 scale and 16 bytes of two-bit codes, lowest first, for 64 weights: code - 1 times scale. Activations in
// q8_0.
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q2_0_format;
inline constexpr std::size_t q2_0_weights = 64, q2_0_block_bytes = 18;

namespace avx2 {
Q8Rows q2_0_rows;
}  // namespace avx2

namespace avx512 {
Q8Rows q2_0_rows;
}  // namespace avx512

}  // namespace bankml
