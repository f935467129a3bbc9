// TQ2_0: 64 bytes of two-bit codes and an f16 scale for 256 weights, code - 1 times scale. Activations in q8_K; one
// order of additions (ggml_vec_dot_tq2_0_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat tq2_0_format;
inline constexpr std::size_t tq2_0_bytes = 66;

namespace avx2 {
Q8KRows tq2_0_rows;
}  // namespace avx2

}  // namespace bankml
