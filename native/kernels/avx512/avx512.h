// The AVX-512 functions of the table (kernels.h).
#pragma once
#include "kernels/kernels.h"

namespace bankml::avx512 {
void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, float scale,
                  float *maximum, float *sum, float *out, float *scratch);
void attend_tile(const HeadCache &cache, std::size_t first, std::size_t rows, const float *q, std::size_t ldq,
                 float scale, float *out, std::size_t ldo, float *scratch);
}  // namespace bankml::avx512
