// Q5_0: an f16 scale, 32 fifth bits and 16 bytes of nibbles, value - 16, for 32 weights. Activations in q8_0; one order
// of additions (ggml_vec_dot_q5_0_q8_0, tinyBLAS_Q0_AVX).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q5_0_format;

namespace avx2 {
Q8Rows q5_0_rows;
}  // namespace avx2

}  // namespace bankml
