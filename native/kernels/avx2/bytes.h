// Sums of signed bytes in AVX2, shared by the products of quantized weights.
#pragma once
#include <cstring>

#include "kernels/avx2/vector.h"

namespace bankml {
namespace {

// Eight sums of four neighbouring bytes.
inline __m256i sum_fours(__m256i bytes) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
}

inline std::int32_t sum_all(__m256i v) {
    const __m128i t = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i u = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(u, _mm_shuffle_epi32(u, 0xb1)));
}

inline __m256i load_bytes(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }

}  // namespace
}  // namespace bankml
