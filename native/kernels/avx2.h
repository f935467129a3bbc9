// The AVX2 functions that the AVX-512 table uses as they are.
#pragma once
#include "kernels/kernels.h"

namespace bankml::avx2 {
void round_f16(std::size_t n, const float *x, std::uint16_t *y);
void widen_f16(std::size_t n, const std::uint16_t *x, float *y);
void through_f16(std::size_t n, const float *x, float *y);
void rms_norm(std::size_t n, const float *x, const float *weight, float eps, float *y);
void swiglu(std::size_t n, const float *gate, const float *up, float *y);
void add(std::size_t n, float *x, const float *y);
void rotate(const float *table, std::size_t rotated, bool neox, std::size_t heads, std::size_t head_size, float *x);
}  // namespace bankml::avx2
