// Products of F32, F16 and BF16 weights in AVX2: the part that they share. An element has `bytes` and `load(p)`, eight
// floats.
#pragma once
#include "formats/format.h"
#include "kernels/avx2/vector.h"

namespace bankml {
namespace {

// The four accumulators of a dot product over whole steps of 32, added (0+2)+(1+3).
template <class Element>
inline __m256 dot_lanes(const std::uint8_t *w, std::size_t whole, const float *x) {
    constexpr std::size_t eight = 8 * Element::bytes;
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
    for (std::size_t i = 0; i < whole; i += 32, w += 4 * eight) {
        a0 = _mm256_fmadd_ps(Element::load(w), _mm256_loadu_ps(x + i), a0);
        a1 = _mm256_fmadd_ps(Element::load(w + eight), _mm256_loadu_ps(x + i + 8), a1);
        a2 = _mm256_fmadd_ps(Element::load(w + 2 * eight), _mm256_loadu_ps(x + i + 16), a2);
        a3 = _mm256_fmadd_ps(Element::load(w + 3 * eight), _mm256_loadu_ps(x + i + 24), a3);
    }
    return _mm256_add_ps(_mm256_add_ps(a0, a2), _mm256_add_ps(a1, a3));
}

template <int C>
void gemm_tile(const float *a, const float *x, std::size_t k, float *y, std::size_t ldy) {
    __m256 acc[C][4];
    for (auto &column : acc) {
        for (auto &v : column) {
            v = _mm256_setzero_ps();
        }
    }
    for (std::size_t i = 0; i < k; i += 8, a += 32) {
        for (int c = 0; c < C; ++c) {
            const __m256 b = _mm256_loadu_ps(x + c * k + i);
            for (int r = 0; r < 4; ++r) {
                acc[c][r] = _mm256_fmadd_ps(_mm256_loadu_ps(a + r * 8), b, acc[c][r]);
            }
        }
    }
    for (int c = 0; c < C; ++c) {
        for (int r = 0; r < 4; ++r) {
            y[c * ldy + r] = sum_halves(acc[c][r]);
        }
    }
}

// One accumulator of eight lanes; rows % 4 == 0, k % 8 == 0; `scratch` holds rows * k floats.
template <class Element>
void gemm(const std::uint8_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t n, float *y,
          std::size_t ldy, float *scratch) {
    for (std::size_t r = 0; r < rows; r += 4) {  // four rows interleaved, eight values at a time
        for (std::size_t i = 0; i < k; i += 8) {
            for (std::size_t j = 0; j < 4; ++j) {
                const std::uint8_t *from = w + ((r + j) * k + i) * Element::bytes;
                _mm256_storeu_ps(scratch + r * k + i * 4 + j * 8, Element::load(from));
            }
        }
    }
    for (std::size_t c = 0; c < n; c += 3) {
        for (std::size_t r = 0; r < rows; r += 4) {
            const float *a = scratch + r * k;
            float *out = y + c * ldy + r;
            switch (n - c) {
                case 1: gemm_tile<1>(a, x + c * k, k, out, ldy); break;
                case 2: gemm_tile<2>(a, x + c * k, k, out, ldy); break;
                default: gemm_tile<3>(a, x + c * k, k, out, ldy);
            }
        }
    }
}

}  // namespace
}  // namespace bankml
