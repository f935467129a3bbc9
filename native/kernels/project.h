// Matrices of weights and their products with activations.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/pool.h"

namespace bankml {

enum class WeightType : int { f16 = 1, q1_0 = 41, q2_0 = 42 };  // ggml's numbers

// rows x columns weights of one type, row after row, in memory that outlives it.
struct Matrix {
    WeightType type;
    const void *data;
    std::size_t rows;
    std::size_t columns;
};

// Bytes of a row of `columns` weights. Throws std::invalid_argument for a type that is not played.
std::size_t weight_bytes(WeightType type, std::size_t columns);

// A row of weights as float32.
void widen_row(WeightType type, const void *row, std::size_t columns, float *y);

// y[i * ldy + offset + r] = matrix[r] . x[i] for every matrix, its rows behind those of the matrix before it.
// x: n rows of `columns` floats, the same number for every matrix, all of one type.
void project(Pool &pool, const std::vector<Matrix> &matrices, const float *x, std::size_t n, float *y, std::size_t ldy);

}  // namespace bankml
