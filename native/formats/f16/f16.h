// F16: two bytes a weight. One order of additions where a row of activations is alone in its batch (ggml_vec_dot_f16),
// another where there are several (llamafile_sgemm's tinyBLAS, for shapes that it takes).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat f16_format;

inline constexpr std::size_t f16_dot_family = 0, f16_gemm_family = 1;
inline constexpr std::size_t f16_gemm_rows = 32;  // prepared at once

inline BlockPlan f16_gemm_plan(std::size_t k) { return {f16_gemm_rows, SIZE_MAX, f16_gemm_rows * k}; }

namespace portable {
// The dot product of one row of f16 weights with x, which has passed f16_round_trip.
float f16_dot(const std::uint16_t *w, std::size_t k, const float *x);
}  // namespace portable

namespace avx2 {
Product f16_rows, f16_gemm;
}  // namespace avx2

namespace avx512 {
Product f16_rows, f16_gemm;
void f16_dots(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, float *y);
}  // namespace avx512

}  // namespace bankml
