// The dot product of f16 weights in AVX2 (ggml_vec_dot_f16; portable::f16_dot): the F16 format's and attention's.
#pragma once
#include "kernels/avx2/vector.h"

namespace bankml {
namespace {

inline float f16_dot(const std::uint16_t *w, std::size_t k, const float *x) {
    const std::size_t whole = k & ~std::size_t{31};
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
    for (std::size_t i = 0; i < whole; i += 32) {
        a0 = _mm256_fmadd_ps(load_f16(w + i), _mm256_loadu_ps(x + i), a0);
        a1 = _mm256_fmadd_ps(load_f16(w + i + 8), _mm256_loadu_ps(x + i + 8), a1);
        a2 = _mm256_fmadd_ps(load_f16(w + i + 16), _mm256_loadu_ps(x + i + 16), a2);
        a3 = _mm256_fmadd_ps(load_f16(w + i + 24), _mm256_loadu_ps(x + i + 24), a3);
    }
    return finish_dot(sum_neighbours(_mm256_add_ps(_mm256_add_ps(a1, a3), _mm256_add_ps(a0, a2))), w, x, whole, k);
}

}  // namespace
}  // namespace bankml
