// From the states of an input's tokens to one vector.
#pragma once
#include <cstddef>

namespace bankml {

// The mean of n rows of x, each `width` wide, as ggml_vec_dot_f32 of a column and n values of 1/n: four accumulators of
// eight lanes over whole steps of 32 rows, then the rest in order.
void mean_of_rows(const float *x, std::size_t n, std::size_t width, float *y);

// ggml_compute_forward_soft_max_f32 of one row, in place.
void softmax(float *x, std::size_t n);

// llama.cpp's common_embd_normalize, in place. norm -1: none; 0: the largest magnitude becomes 32760; 2: Euclidean;
// else the p-norm of that p.
void normalize(float *x, std::size_t n, int norm);

}  // namespace bankml
