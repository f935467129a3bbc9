// Products of F32 and BF16 weights, the definition. An element has `bytes` and `value(p)`.
#pragma once
#include <cmath>

#include "formats/format.h"
#include "kernels/lanes.h"

namespace bankml {

inline constexpr std::size_t float_dot = 0, float_gemm = 1;  // families
inline constexpr std::size_t gemm_rows = 32;                 // prepared at once

inline BlockPlan gemm_plan(std::size_t k) { return {gemm_rows, SIZE_MAX, gemm_rows * k}; }

// tinyBLAS takes two rows of activations and more, and these shapes.
inline Choice dot_or_gemm(std::size_t rows, std::size_t columns, std::size_t span) {
    return {span >= 2 && rows % 4 == 0 && columns % 8 == 0 ? float_gemm : float_dot, 0, 0};
}

namespace portable {

// The four accumulators of eight lanes of a dot product over whole steps of 32, added (0+2)+(1+3) or (1+3)+(0+2).
template <class Element>
void dot_lanes(const std::uint8_t *w, std::size_t whole, const float *x, float *lane) {
    float acc[32] = {};
    for (std::size_t i = 0; i < whole; ++i) {
        acc[i % 32] = std::fma(Element::value(w + i * Element::bytes), x[i], acc[i % 32]);
    }
    for (int i = 0; i < 8; ++i) {
        lane[i] = (acc[i] + acc[16 + i]) + (acc[8 + i] + acc[24 + i]);
    }
}

// tinyBLAS<8, __m256, __m256, …>: one accumulator of eight lanes. k % 8 == 0.
template <class Element>
void gemm_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t n, float *y,
               std::size_t ldy) {
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            float lane[8] = {};
            for (std::size_t i = 0; i < k; ++i) {
                lane[i % 8] = std::fma(Element::value(w + (r * k + i) * Element::bytes), x[c * k + i], lane[i % 8]);
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

}  // namespace portable

template <class Element>
void widen_elements(const std::uint8_t *row, std::size_t columns, float *y) {
    for (std::size_t i = 0; i < columns; ++i) {
        y[i] = Element::value(row + i * Element::bytes);
    }
}

}  // namespace bankml
