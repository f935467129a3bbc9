// Q2_K: 16 bytes of scales (low nibbles) and minima (high), 64 bytes of two-bit values, f16 scale and scale of the
// minima for 256 weights. Activations in q8_K; one order of additions, the minima's before the products'
// (ggml_vec_dot_q2_K_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q2_K_format;
inline constexpr std::size_t q2_K_bytes = 84;

namespace avx2 {
Q8KRows q2_K_rows;
}  // namespace avx2

}  // namespace bankml
