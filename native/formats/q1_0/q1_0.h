// Q1_0: an f16 scale and 16 bytes of bits, lowest first, for 128 weights: 1 is +scale, 0 is -scale. Activations in
// q8_0.
#pragma once
#include "formats/format.h"

namespace bankml {

extern const WeightFormat q1_0_format;
inline constexpr std::size_t q1_0_weights = 128, q1_0_block_bytes = 18;

namespace avx2 {
Q8Rows q1_0_rows;
}  // namespace avx2

namespace avx512 {
Q8Rows q1_0_rows;
void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy, float *scratch);
BlockPlan q1_0_plan(std::size_t k);
}  // namespace avx512

}  // namespace bankml
