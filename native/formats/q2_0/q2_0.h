// Q2_0: an f16 scale and 16 bytes of two-bit codes, lowest first, for 64 weights: code - 1 times scale. Activations in
// q8_0.
//
// In memory 32 rows are interleaved, and each word's codes are transposed as four rows of four: a shift by 2 s and a
// mask give its codes 4 s to 4 s + 3, a byte each.
#pragma once
#include "formats/format.h"
#include "formats/interleaved.h"

namespace bankml {

extern const WeightFormat q2_0_format;
inline constexpr std::size_t q2_0_weights = 64, q2_0_block_bytes = 18;

// Code i of byte j and code j of byte i change places: neighbours first, then pairs.
inline std::uint32_t q2_0_transposed(std::uint32_t codes) {
    const std::uint32_t one = (codes ^ codes >> 6) & 0x00cc00cc;
    codes ^= one ^ one << 6;
    const std::uint32_t two = (codes ^ codes >> 12) & 0x0000f0f0;
    return codes ^ two ^ two << 12;
}
inline constexpr const RowLayout &q2_0_layout = interleaved::layout<q2_0_transposed>;

namespace avx2 {
Q8Rows q2_0_rows;
Q8Rows q2_0_rest;  // of rows that are no whole group: as they stand in the file
}  // namespace avx2

namespace avx512 {
Q8Rows q2_0_rows;
}  // namespace avx512

}  // namespace bankml
