// Blocks of weights as they stand in a file, and the portable definition of what they multiply with.
//   Q1_0: f16 scale, 16 bytes of bits, lowest first, 128 weights: 1 is +scale, 0 is -scale.
//   Q2_0: f16 scale, 16 bytes of two-bit codes, lowest first, 64 weights: code - 1 times scale.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/half.h"
#include "kernels/kernels.h"

namespace bankml {

inline constexpr std::size_t quantized_block_bytes = 18;  // of either type
inline constexpr std::size_t q1_0_weights = 128, q2_0_weights = 64, q8_0_values = 32;

inline std::uint16_t block_scale(const std::uint8_t *block) {
    std::uint16_t h;
    std::memcpy(&h, block, 2);
    return h;
}

// A table's entry as the type of the function that stands in it.
template <class Entry>
using Function = std::remove_pointer_t<Entry>;
using QuantizeQ8 = Function<decltype(Kernels::quantize_q8)>;
using QuantizedRows = Function<decltype(Kernels::q1_0_rows)>;
using QuantizedBlock = Function<decltype(Kernels::q1_0_block)>;
using BlockScratch = Function<decltype(Kernels::q1_0_block_scratch)>;

namespace portable {
QuantizeQ8 quantize_q8;
QuantizedRows q1_0_rows, q2_0_rows;
QuantizedBlock q1_0_block;
BlockScratch q1_0_block_scratch;
}  // namespace portable

namespace avx2 {
QuantizeQ8 quantize_q8;
QuantizedRows q1_0_rows, q2_0_rows;
QuantizedBlock q1_0_block;
BlockScratch q1_0_block_scratch;
}  // namespace avx2

namespace avx512 {
QuantizedRows q1_0_rows, q2_0_rows;
QuantizedBlock q1_0_block;
BlockScratch q1_0_block_scratch;
}  // namespace avx512

}  // namespace bankml
