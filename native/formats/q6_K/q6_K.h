// Q6_K: 128 bytes of low nibbles, 64 of two high bits, 16 signed scales and an f16 scale for 256 weights. Activations
// in q8_K; one order of additions (ggml_vec_dot_q6_K_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q6_K_format;
inline constexpr std::size_t q6_K_bytes = 210;

namespace avx2 {
Q8KRows q6_K_rows;
}  // namespace avx2

}  // namespace bankml
