// One block of q8_0 and q8_1 in AVX2; see portable::quantize_block.
#pragma once
#include "activations/activation.h"
#include "kernels/avx2/bytes.h"

namespace bankml {
namespace {

inline float quantize_block(const float *x, std::int8_t *q, std::int32_t *sum) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 v[4];
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_loadu_ps(x + i * 8);
    }
    __m256 peaks = _mm256_andnot_ps(sign, v[0]);
    for (int i = 1; i < 4; ++i) {
        peaks = _mm256_max_ps(peaks, _mm256_andnot_ps(sign, v[i]));
    }
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(peaks, 1), _mm256_castps256_ps128(peaks));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    const float peak = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
    const float inverse = peak != 0.0f ? 127.0f / peak : 0.0f;
    __m256i whole[4];
    for (int i = 0; i < 4; ++i) {
        whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
    }
    const __m256i packed =
        _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3]));
    const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(q), bytes);
    *sum = sum_all(_mm256_add_epi32(_mm256_add_epi32(whole[0], whole[1]), _mm256_add_epi32(whole[2], whole[3])));
    return peak / 127.0f;
}

}  // namespace
}  // namespace bankml
