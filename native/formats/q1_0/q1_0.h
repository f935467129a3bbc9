// Q1_0: an f16 scale and 16 bytes of bits, lowest first, for 128 weights: 1 is +scale, 0 is -scale. Activations in
// q8_0.
//
// In memory 32 rows are interleaved, and the three low bits of each nibble are inverted where its high bit is 0: then
// they choose one of eight sums of the four activations, and the high bit that sum's sign.
#pragma once
#include "formats/format.h"
#include "formats/interleaved.h"

namespace bankml {

extern const WeightFormat q1_0_format;
inline constexpr std::size_t q1_0_weights = 128, q1_0_block_bytes = 18;

inline std::uint32_t q1_0_nibbles(std::uint32_t bits) { return bits ^ (~bits >> 3 & 0x11111111u) * 7; }
inline constexpr const RowLayout &q1_0_layout = interleaved::layout<q1_0_nibbles>;

namespace avx2 {
Q8Block q1_0_block;
BlockPlan q1_0_plan(std::size_t k);
Q8Rows q1_0_rest;  // of rows that are no whole group: as they stand in the file
}  // namespace avx2

namespace avx512 {
Q8Block q1_0_block;
BlockPlan q1_0_plan(std::size_t k);
}  // namespace avx512

}  // namespace bankml
