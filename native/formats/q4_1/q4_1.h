// Q4_1: f16 scale and minimum, 16 bytes of nibbles for 32 weights. Activations in q8_1; one order of additions
// (ggml_vec_dot_q4_1_q8_1).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q4_1_format;

namespace avx2 {
Q8_1Rows q4_1_rows;
}  // namespace avx2

}  // namespace bankml
