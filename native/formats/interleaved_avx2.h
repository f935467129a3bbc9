// What the AVX2 products of interleaved rows share.
#pragma once
#include <immintrin.h>

#include "formats/interleaved.h"

namespace bankml::avx2 {
namespace {

// The block of a few blocks ahead: more streams than one are not followed by the hardware as well. Past the matrix a
// prefetch does nothing.
inline void prefetch_block(const std::uint8_t *block) {
    constexpr std::size_t ahead = 4 * interleaved::block_bytes;
    for (std::size_t i = 0; i < interleaved::block_bytes; i += 64) {
        _mm_prefetch(reinterpret_cast<const char *>(block + ahead + i), _MM_HINT_T0);
    }
}

// The scales of eight rows of a block, the i-th eight of its group.
inline __m256 scales(const std::uint8_t *block, std::size_t i) {
    const std::uint8_t *at = block + interleaved::scales_at + i * 16;
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(at)));
}

}  // namespace
}  // namespace bankml::avx2
