// Small pieces shared by the AVX-512 files.
#pragma once
#include "kernels/avx2/vector.h"

namespace bankml {
namespace {

inline __m512 load16_f16(const std::uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
}

inline __m512 through16_f16(__m512 v) { return _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }

}  // namespace
}  // namespace bankml
