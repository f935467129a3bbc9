// What a K/V cache in q8_0 needs: blocks as they stand in it, and the functions of each instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/quantized.h"

namespace bankml {

inline constexpr std::size_t q8_0_block_bytes = 34;

constexpr std::size_t q8_0_row_bytes(std::size_t head_size) { return head_size / q8_0_values * q8_0_block_bytes; }

namespace portable {
void hadamard(std::size_t n, float *x);
void attend_cells_q8(const Q8HeadCache &cache, std::size_t end, const Q8Column &q, float scale, float *sum, float *out);
}  // namespace portable

namespace avx2 {
void hadamard(std::size_t n, float *x);
void attend_cells_q8(const Q8HeadCache &cache, std::size_t end, const Q8Column &q, float scale, float *sum, float *out);
}  // namespace avx2

}  // namespace bankml
