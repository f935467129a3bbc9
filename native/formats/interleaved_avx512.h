// What the AVX-512 products of interleaved rows share.
#pragma once
#include <immintrin.h>

#include "formats/interleaved.h"

namespace bankml::avx512 {
namespace {

// The block of a few blocks ahead: more streams than one are not followed by the hardware as well. Past the matrix a
// prefetch does nothing.
inline void prefetch_block(const std::uint8_t *block) {
    constexpr std::size_t ahead = 4 * interleaved::block_bytes;
    for (std::size_t i = 0; i < interleaved::block_bytes; i += 64) {
        _mm_prefetch(reinterpret_cast<const char *>(block + ahead + i), _MM_HINT_T0);
    }
}

// The scales of sixteen rows of a block: of the first (0) or the second (1) half of its rows.
inline __m512 scales(const std::uint8_t *block, std::size_t half) {
    const std::uint8_t *at = block + interleaved::scales_at + half * 32;
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(at)));
}

}  // namespace
}  // namespace bankml::avx512
