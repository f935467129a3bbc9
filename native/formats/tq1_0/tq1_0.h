// TQ1_0: five ternary digits a byte in 48 bytes, four in each of four more, and an f16 scale for 256 weights, digit - 1
// times scale. Activations in q8_K; one order of additions (ggml_vec_dot_tq1_0_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat tq1_0_format;
inline constexpr std::size_t tq1_0_bytes = 54;

// The digit at the top of a byte that has been multiplied by a power of three.
inline std::int8_t top_digit(std::uint8_t byte) { return std::int8_t(byte * 3 >> 8); }

namespace avx2 {
Q8KRows tq1_0_rows;
}  // namespace avx2

}  // namespace bankml
