// Q4_K: f16 scale and scale of the minima, 12 bytes of eight scales and eight minima, 128 bytes of nibbles for 256
// weights. Activations in q8_K. The reference repacks a matrix whose rows are a multiple of eight; of the rows of a
// batch the last n % 4 then go through gemv (one multiply-add a block), those before through gemm (one every 64
// weights). Other matrices are summed in lanes (ggml_vec_dot_q4_K_q8_K).
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q4_K_format;
inline constexpr std::size_t q4_K_bytes = 144;
inline constexpr std::size_t q4_K_gemv = 0, q4_K_gemm = 1, q4_K_lanes = 2;  // families

namespace avx2 {
Q8KRows q4_K_gemv_rows, q4_K_gemm_rows, q4_K_lanes_rows;
Q8KBlock q4_K_gemm_block;
BlockPlan q4_K_gemm_plan(std::size_t k);
}  // namespace avx2

}  // namespace bankml
