// The AVX-512 functions of the table (kernels.h).
#pragma once
#include "kernels/kernels.h"

namespace bankml::avx512 {
void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, const ScoreRule &rule,
                  OnlineSoftmax &state, float *out, float *scratch);
void attend_tile(const HeadCache &cache, const VisibleCells &visible, std::size_t first, std::size_t rows,
                 const float *q, std::size_t ldq, const ScoreRule &rule, float *out, std::size_t ldo, float *scratch);
}  // namespace bankml::avx512
