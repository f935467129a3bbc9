// Products over blocks of 256 weights in AVX2; see super_blocks.h. A codec has `bytes` and `unpack(block)`, which gives
// 8 times 32 bytes without sign, and for each the scales of its two groups of 16 in 16 bits.
#pragma once
#include "formats/avx2_blocks.h"

namespace bankml {
namespace {

inline constexpr std::size_t super_block = 256;

struct UnpackedBlock {
    __m256i value[8], scale[8];
};

// The 6-bit scales and minima of Q4_K and Q5_K: eight bytes of scales, eight of minima.
inline __m128i unpack_scales(const std::uint8_t *packed) {
    std::uint32_t word[3];
    std::memcpy(word, packed, 12);
    const std::uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x03030303;
    const std::uint32_t low = word[0] & six, high = (word[2] & four) | (word[0] >> 6 & two) << 4;
    const std::uint32_t low_minima = word[1] & six, high_minima = (word[2] >> 4 & four) | (word[1] >> 6 & two) << 4;
    return _mm_setr_epi32(int(low), int(high), int(low_minima), int(high_minima));
}

// Eight scales, one each 32 values, as 16-bit numbers.
inline void spread_scales(__m128i bytes, __m256i scale[8]) {
    const __m128i wide = _mm_cvtepu8_epi16(bytes);
    const __m256i both = _mm256_broadcastsi128_si256(wide);
    for (int i = 0; i < 8; ++i) {
        scale[i] = _mm256_shuffle_epi8(both, _mm256_set1_epi16(std::int16_t((2 * i + 1) << 8 | 2 * i)));
    }
}

// The sums of 32 activations times their minimum, of parts 2 l and 2 l + 1 in lane l.
inline __m128i minima_sums(__m128i scales_and_minima, const std::int16_t *sums) {
    const __m256i sixteens = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(sums));
    const __m128i thirty_twos = _mm_hadd_epi16(_mm256_castsi256_si128(sixteens), _mm256_extracti128_si256(sixteens, 1));
    return _mm_madd_epi16(_mm_cvtepu8_epi16(_mm_srli_si128(scales_and_minima, 8)), thirty_twos);
}

inline std::int32_t sum_four(__m128i v) {
    const __m128i u = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(u, _mm_shuffle_epi32(u, 0xb1)));
}

// The scaled sums of part's 32 products, four to a lane.
inline __m256i part_sums(const UnpackedBlock &block, const std::int8_t *q, int part) {
    return _mm256_madd_epi16(block.scale[part], _mm256_maddubs_epi16(block.value[part], load_bytes(q + part * 32)));
}

// lane_sums of the definition.
inline __m256i lane_sums(const UnpackedBlock &block, const std::int8_t *q) {
    __m256i sum = part_sums(block, q, 0);
    for (int part = 1; part < 8; ++part) {
        sum = _mm256_add_epi32(sum, part_sums(block, q, part));
    }
    return sum;
}

}  // namespace
}  // namespace bankml
