// BF16: the upper halves of floats, and activations rounded to them. One order of additions where a row of activations
// is alone in its batch (ggml_vec_dot_bf16), another where there are several (tinyBLAS, for shapes that it takes).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat bf16_format;

namespace avx2 {
Product bf16_rows, bf16_gemm;
}  // namespace avx2

}  // namespace bankml
