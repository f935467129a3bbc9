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
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i *>(packed));  // the fourth is not theirs
    const __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(words, 0x98), _mm_setr_epi32(0, 0, 0, 4));  // words 0, 2, 1, 2
    const __m128i high = _mm_srli_epi32(_mm_shuffle_epi32(words, 0x50), 2);                          // words 0, 0, 1, 1
    const __m128i six_or_four = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m128i two = _mm_setr_epi32(0, 0x30303030, 0, 0x30303030);
    return _mm_or_si128(_mm_and_si128(low, six_or_four), _mm_and_si128(high, two));
}

// Eight scales, one each 32 values, as 16-bit numbers.
inline void spread_scales(__m128i bytes, __m256i scale[8]) {
    const __m128i wide = _mm_cvtepu8_epi16(bytes);
    const __m256i both = _mm256_broadcastsi128_si256(wide);
#pragma GCC unroll 8
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

// The sums of four rows' four integers each.
inline __m128i sum_four_rows(const __m128i row[4]) {
    return _mm_hadd_epi32(_mm_hadd_epi32(row[0], row[1]), _mm_hadd_epi32(row[2], row[3]));
}

inline std::int32_t sum_four(__m128i v) {
    const __m128i u = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(u, _mm_shuffle_epi32(u, 0xb1)));
}

// Sixteen scales, two each 32 values, from signed bytes.
inline void spread_group_scales(__m128i bytes, __m256i scale[8]) {
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
        const __m128i which = _mm_insert_epi64(_mm_set1_epi8(char(2 * part)), 0x0101010101010101ll * (2 * part + 1), 1);
        scale[part] = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, which));
    }
}

// 64 bytes of two-bit codes.
inline void unpack_two_bits(const std::uint8_t *codes, __m256i value[8]) {
    const __m256i two = _mm256_set1_epi8(3);
#pragma GCC unroll 8
    for (int half = 0; half < 2; ++half) {
        const __m256i all = load_bytes(codes + half * 32);
        value[half * 4] = _mm256_and_si256(all, two);
        value[half * 4 + 1] = _mm256_and_si256(_mm256_srli_epi16(all, 2), two);
        value[half * 4 + 2] = _mm256_and_si256(_mm256_srli_epi16(all, 4), two);
        value[half * 4 + 3] = _mm256_and_si256(_mm256_srli_epi16(all, 6), two);
    }
}

// The scaled sums of part's 32 products, four to a lane.
template <bool with_sign = false>
inline __m256i part_sums(const UnpackedBlock &block, const std::int8_t *q, int part) {
    const __m256i x = load_bytes(q + part * 32), value = block.value[part];
    const __m256i pairs = with_sign ? signed_pairs(value, x) : _mm256_maddubs_epi16(value, x);
    return _mm256_madd_epi16(block.scale[part], pairs);
}

// lane_sums of the definition.
template <bool with_sign = false>
inline __m256i lane_sums(const UnpackedBlock &block, const std::int8_t *q) {
    __m256i sum = part_sums<with_sign>(block, q, 0);
#pragma GCC unroll 8
    for (int part = 1; part < 8; ++part) {
        sum = _mm256_add_epi32(sum, part_sums<with_sign>(block, q, part));
    }
    return sum;
}

// portable::super_lanes_rows. `with_sign`: values are signed; `above(block, sums)`, where there is one, is taken off
// the lanes.
template <class Codec>
void super_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * Codec::bytes) {
        for_columns<8>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                const float d = Codec::scale(block);
                UnpackedBlock unpacked;
                Codec::unpack(block, unpacked);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8KColumn &x = columns[first + c];
                    __m256i sums = lane_sums<Codec::with_sign>(unpacked, x.q + b * super_block);
                    if constexpr (requires { Codec::above(block, x.sums); }) {
                        sums = _mm256_sub_epi32(sums, Codec::above(block, x.sums + b * q8_K_sums));
                    }
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(x.d[b] * d), _mm256_cvtepi32_ps(sums), acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]);
            }
        });
    }
}

}  // namespace
}  // namespace bankml
