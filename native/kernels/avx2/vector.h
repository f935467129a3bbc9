// Small pieces shared by the AVX2 and AVX-512 files; include only from code compiled for AVX2, FMA and F16C.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace bankml {
namespace {

inline __m256 load_f16(const std::uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
}

inline void store_f16(std::uint16_t *p, __m256 v) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

inline float widen_one(std::uint16_t h) { return _cvtsh_ss(h); }

// Halves, then quarters, then the pair (sum_lanes of the definition).
inline float sum_halves(__m256 v) {
    __m128 t = _mm_add_ps(_mm256_extractf128_ps(v, 1), _mm256_castps256_ps128(v));
    t = _mm_add_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

// Halves, then neighbours twice (the end of f16_dot).
inline float sum_neighbours(__m256 v) {
    __m128 t = _mm_add_ps(_mm256_extractf128_ps(v, 1), _mm256_castps256_ps128(v));
    t = _mm_hadd_ps(t, t);
    return _mm_cvtss_f32(_mm_hadd_ps(t, t));
}

// What k leaves after whole steps of 32: multiplied in float, added in double.
inline float finish_dot(float sum, const std::uint16_t *w, const float *x, std::size_t from, std::size_t k) {
    if (from == k) {
        return sum;
    }
    double total = double(sum);
    for (std::size_t i = from; i < k; ++i) {
        total += double(widen_one(w[i]) * x[i]);
    }
    return float(total);
}

inline __m256 polynomial_exp8(__m256 x) {
    const __m256 round = _mm256_set1_ps(0x1.8p23f);
    const __m256 z = _mm256_fmadd_ps(x, _mm256_set1_ps(0x1.715476p+0f), round);
    const __m256 n = _mm256_sub_ps(z, round);
    const __m256 b =
        _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1f), x));
    const __m256i e = _mm256_slli_epi32(_mm256_castps_si256(z), 23);
    const __m256 k = _mm256_castsi256_ps(_mm256_add_epi32(e, _mm256_set1_epi32(0x3f800000)));
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), n);
    const __m256 wide = _mm256_cmp_ps(size, _mm256_set1_ps(126.0f), _CMP_GT_OQ);
    const __m256 u = _mm256_mul_ps(b, b);
    const __m256 low = _mm256_fmadd_ps(_mm256_set1_ps(0x1.555e66p-3f), b, _mm256_set1_ps(0x1.fffdb6p-2f));
    const __m256 top = _mm256_fmadd_ps(_mm256_set1_ps(0x1.0e4020p-7f), b, _mm256_set1_ps(0x1.573e2ep-5f));
    const __m256 j = _mm256_fmadd_ps(_mm256_fmadd_ps(top, u, low), u, _mm256_mul_ps(_mm256_set1_ps(0x1.ffffecp-1f), b));
    const __m256 near = _mm256_fmadd_ps(j, k, k);
    if (!_mm256_movemask_ps(wide)) {
        return near;
    }
    const __m256i negative = _mm256_castps_si256(_mm256_cmp_ps(n, _mm256_setzero_ps(), _CMP_LE_OQ));
    const __m256i g = _mm256_and_si256(negative, _mm256_set1_epi32(int(0x82000000u)));
    const __m256 s1 = _mm256_castsi256_ps(_mm256_add_epi32(g, _mm256_set1_epi32(0x7f000000)));
    const __m256 s2 = _mm256_castsi256_ps(_mm256_sub_epi32(e, g));
    const __m256 far = _mm256_mul_ps(_mm256_fmadd_ps(s2, j, s2), s1);
    const __m256 beyond = _mm256_cmp_ps(size, _mm256_set1_ps(192.0f), _CMP_GT_OQ);
    return _mm256_blendv_ps(_mm256_blendv_ps(near, far, wide), _mm256_mul_ps(s1, s1), beyond);
}

inline void transpose8(__m256 r[8]) {
    __m256 t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    __m256 u[8];
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

// `cells` rows of d f16 values (d % 8 == 0) as floats, transposed: kt[i][cell], 64 cells a row, absent cells zero.
inline void widen_transposed(const std::uint16_t *k, std::size_t cells, std::size_t d, float *kt) {
    for (std::size_t c = 0; c < 64; c += 8) {
        for (std::size_t i = 0; i < d; i += 8) {
            __m256 r[8];
            for (std::size_t j = 0; j < 8; ++j) {
                r[j] = c + j < cells ? load_f16(k + (c + j) * d + i) : _mm256_setzero_ps();
            }
            transpose8(r);
            for (std::size_t j = 0; j < 8; ++j) {
                _mm256_storeu_ps(kt + (i + j) * 64 + c, r[j]);
            }
        }
    }
}

}  // namespace
}  // namespace bankml
