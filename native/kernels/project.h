// Matrices of weights and their products with activations.
#pragma once
#include <cstddef>
#include <vector>

#include "formats/format.h"
#include "kernels/pool.h"

namespace bankml {

// rows x columns weights of one type, in its format's layout, in memory that outlives it.
struct Matrix {
    const WeightFormat *format;
    const std::uint8_t *data;
    std::size_t rows;
    std::size_t columns;
};

// The rows [begin, end) of x meet `matrix` by the products of one family; the results stand from column `offset` on.
struct ProductJob {
    const Matrix *matrix;
    std::size_t family, begin, end, offset;
};

// y[i * ldy + offset + r] = matrix[r] . x[i] for every job and each of its rows i. x: n rows of `columns` floats, as
// wide as every matrix.
void run_products(Pool &pool, const std::vector<ProductJob> &jobs, const float *x, std::size_t n, std::size_t columns,
                  float *y, std::size_t ldy);

// y[i * ldy + offset + r] = matrix[r] . x[i] for every matrix, its rows behind those of the matrix before it.
//
// x: n rows of `columns` floats, the same number for every matrix; the matrices may be of different types. The rows
// come in spans of `span` rows (n is a multiple of it), each of them the micro-batch of one sequence: which of a type's
// products is computed, and so the bits, depends on the span alone, however many sequences' spans are computed
// together.
void project(Pool &pool, const std::vector<Matrix> &matrices, const float *x, std::size_t n, std::size_t span, float *y,
             std::size_t ldy);

}  // namespace bankml
