// Q8_0: an f16 scale and 32 signed bytes. Activations in q8_0; one order of additions for any number of rows
// (ggml_vec_dot_q8_0_q8_0, tinyBLAS_Q0_AVX).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q8_0_format;

namespace avx2 {
Q8Rows q8_0_rows;
}  // namespace avx2

}  // namespace bankml
