// Q3_K: 32 bytes of high bits, 64 of two low bits, 12 of 16 six-bit scales and an f16 scale for 256 weights.
// Activations in q8_K; one order of additions (ggml_vec_dot_q3_K_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q3_K_format;
inline constexpr std::size_t q3_K_bytes = 110;

namespace avx2 {
Q8KRows q3_K_rows;
}  // namespace avx2

}  // namespace bankml
