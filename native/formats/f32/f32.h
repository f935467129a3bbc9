// F32: floats. One order of additions where a row of activations is alone in its batch (ggml_vec_dot_f32), another
// where there are several (tinyBLAS, for shapes that it takes).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat f32_format;

namespace avx2 {
Product f32_rows, f32_gemm;
}  // namespace avx2

}  // namespace bankml
