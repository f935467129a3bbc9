// Q5_1: f16 scale and minimum, 32 fifth bits and 16 bytes of nibbles for 32 weights. Activations in q8_1; one order of
// additions (ggml_vec_dot_q5_1_q8_1).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q5_1_format;

namespace avx2 {
Q8_1Rows q5_1_rows;
}  // namespace avx2

}  // namespace bankml
