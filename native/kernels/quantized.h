// Blocks of weights as they stand in a file, and the portable definition of what they multiply with.
//   Q1_0: f16 scale, 16 bytes of bits, lowest first, 128 weights: 1 is +scale, 0 is -scale.
//   Q2_0: f16 scale, 16 bytes of two-bit codes, lowest first, 64 weights: code - 1 times scale.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

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

namespace portable {
void quantize_q8(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum);
void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy);
void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy);
void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
                std::size_t ldy, float *scratch);
std::size_t q1_0_block_scratch(std::size_t rows, std::size_t k);
}  // namespace portable

namespace avx2 {
void quantize_q8(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum);
void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy);
void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy);
void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
                std::size_t ldy, float *scratch);
std::size_t q1_0_block_scratch(std::size_t rows, std::size_t k);
}  // namespace avx2

namespace avx512 {
void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy);
void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy);
void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
                std::size_t ldy, float *scratch);
std::size_t q1_0_block_scratch(std::size_t rows, std::size_t k);
}  // namespace avx512

}  // namespace bankml
