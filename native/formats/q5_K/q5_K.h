// Q5_K: f16 scale and scale of the minima, 12 bytes of eight scales and eight minima, 32 bytes of fifth bits, 128 of
// nibbles for 256 weights. Activations in q8_K; one order of additions (ggml_vec_dot_q5_K_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q5_K_format;
inline constexpr std::size_t q5_K_bytes = 176;

namespace avx2 {
Q8KRows q5_K_rows;
}  // namespace avx2

}  // namespace bankml
