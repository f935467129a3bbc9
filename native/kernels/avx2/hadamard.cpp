// The Hadamard rotation in AVX2.
#include <immintrin.h>

#include <cmath>

#include "kernels/avx2/avx2.h"

namespace bankml::avx2 {

void hadamard(std::size_t n, float *x) {
    const __m256 scale = _mm256_set1_ps(1.0f / std::sqrt(float(n)));
    // A lane's partner, plus the lane itself, negated in the upper lane of each pair: a + b below, a - b above.
    const __m256 ones = _mm256_setr_ps(0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f);
    const __m256 twos = _mm256_setr_ps(0.0f, 0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -0.0f);
    const __m256 fours = _mm256_setr_ps(0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f);
    for (std::size_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), scale);
        v = _mm256_add_ps(_mm256_permute_ps(v, 0xb1), _mm256_xor_ps(v, ones));
        v = _mm256_add_ps(_mm256_permute_ps(v, 0x4e), _mm256_xor_ps(v, twos));
        v = _mm256_add_ps(_mm256_permute2f128_ps(v, v, 0x01), _mm256_xor_ps(v, fours));
        _mm256_storeu_ps(x + i, v);
    }
    for (std::size_t apart = 8; apart < n; apart *= 2) {
        for (std::size_t i = 0; i < n; i += 2 * apart) {
            for (std::size_t j = i; j < i + apart; j += 8) {
                const __m256 a = _mm256_loadu_ps(x + j), b = _mm256_loadu_ps(x + j + apart);
                _mm256_storeu_ps(x + j, _mm256_add_ps(a, b));
                _mm256_storeu_ps(x + j + apart, _mm256_sub_ps(a, b));
            }
        }
    }
}

}  // namespace bankml::avx2
