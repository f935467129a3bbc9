// The portable functions of the table (kernels.h).
#pragma once
#include "kernels/kernels.h"

namespace bankml::portable {
void f32_to_f16(std::size_t n, const float *x, std::uint16_t *y);
void f16_to_f32(std::size_t n, const std::uint16_t *x, float *y);
void f16_round_trip(std::size_t n, const float *x, float *y);
void quantize_q8_0(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum);
void quantize_q8_1(std::size_t n, const float *x, std::int8_t *q, float *d, float *s);
void quantize_q8_K(std::size_t n, const float *x, std::int8_t *q, float *d, std::int16_t *sums);
void rms_norm(std::size_t n, const float *x, const float *weight, float eps, float *y);
void layer_norm(std::size_t n, const float *x, const float *weight, const float *bias, float eps, float *y);
void swiglu(std::size_t n, const float *gate, const float *up, float *y);
void geglu(std::size_t n, const float *gate, const float *up, float *y);
void gelu(std::size_t n, float *x);
void add(std::size_t n, float *x, const float *y);
void rotate(const float *table, std::size_t rotated, bool neox, std::size_t heads, std::size_t head_size, float *x);
void hadamard(std::size_t n, float *x);
void attend_cells_q8(const Q8HeadCache &cache, std::size_t begin, std::size_t end, const Q8Column &q,
                     const ScoreRule &rule, OnlineSoftmax &state, float *out);
void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, const ScoreRule &rule,
                  OnlineSoftmax &state, float *out, float *scratch);
void attend_tile(const HeadCache &cache, const VisibleCells &visible, std::size_t first, std::size_t rows,
                 const float *q, std::size_t ldq, const ScoreRule &rule, float *out, std::size_t ldo, float *scratch);
}  // namespace bankml::portable
