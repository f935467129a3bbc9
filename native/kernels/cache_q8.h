// Blocks of a K/V cache in q8_0 as they stand in it.
#pragma once
#include "formats/format.h"
#include "kernels/kernels.h"

namespace bankml {

inline constexpr std::size_t q8_0_block_bytes = 34;

constexpr std::size_t q8_0_row_bytes(std::size_t head_size) { return head_size / q8_0_values * q8_0_block_bytes; }

}  // namespace bankml
