// What the AVX-512 products of interleaved rows share.
#pragma once
#include <immintrin.h>

#include "formats/interleaved.h"

namespace bankml::avx512 {
namespace {

// Asks for the block that is `ahead` blocks ahead: more streams than one are not followed by the hardware as well. Past
// the matrix a prefetch does nothing. `hint`: T1 where tables fill the first cache, which would lose the block again.
template <_mm_hint hint>
inline void prefetch_block(const std::uint8_t *block) {
    constexpr std::size_t ahead = 8;
    for (std::size_t i = 0; i < interleaved::block_bytes; i += 64) {
        _mm_prefetch(reinterpret_cast<const char *>(block + ahead * interleaved::block_bytes + i), hint);
    }
}

// The same where passes over eight lanes read rows eight times: each pass asks for its part of a block that is `ahead`
// bytes ahead.
template <std::size_t lane>
inline void prefetch_part(const std::uint8_t *block, std::size_t ahead) {
    _mm_prefetch(reinterpret_cast<const char *>(block + ahead + lane * 64), _MM_HINT_T1);
    if constexpr (lane == 7) {
        _mm_prefetch(reinterpret_cast<const char *>(block + ahead + 8 * 64), _MM_HINT_T1);
    }
}

// The scales of sixteen rows of a block: of the first (0) or the second (1) half of its rows.
inline __m512 scales(const std::uint8_t *block, std::size_t half) {
    const std::uint8_t *at = block + interleaved::scales_at + half * 32;
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(at)));
}

}  // namespace
}  // namespace bankml::avx512
