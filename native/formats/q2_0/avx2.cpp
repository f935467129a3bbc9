// The Q2_0 product in AVX2.
#include <cmath>

#include "formats/avx2_blocks.h"
#include "formats/q2_0/q2_0.h"

namespace bankml::avx2 {
namespace {

// Eight bytes of two-bit codes to 32 bytes.
inline __m256i spread_codes(const std::uint8_t *codes) {
    std::int64_t eight;
    std::memcpy(&eight, codes, 8);
    const __m256i bytes = _mm256_set1_epi64x(eight);
    const __m256i quad = _mm256_shuffle_epi8(bytes, _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4,
                                                                     4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7));
    // Within each 32-bit lane byte i needs a shift by 2 i; words are shifted, and masks keep each byte's own bits.
    const __m256i low = _mm256_and_si256(quad, _mm256_set1_epi32(0x00000003));
    const __m256i second = _mm256_and_si256(_mm256_srli_epi32(quad, 2), _mm256_set1_epi32(0x00000300));
    const __m256i third = _mm256_and_si256(_mm256_srli_epi32(quad, 4), _mm256_set1_epi32(0x00030000));
    const __m256i fourth = _mm256_and_si256(_mm256_srli_epi32(quad, 6), _mm256_set1_epi32(0x03000000));
    return _mm256_or_si256(_mm256_or_si256(low, second), _mm256_or_si256(third, fourth));
}

}  // namespace

void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q2_0_weights;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q2_0_block_bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            float total[C] = {};
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q2_0_block_bytes;
                const __m256i low = spread_codes(block + 2), high = spread_codes(block + 10);
                const float scale = widen_one(block_scale(block));
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8Column &x = columns[first + c];
                    const std::int8_t *q = x.q + b * q2_0_weights;
                    const __m256i first_fours = pairs_to_fours(_mm256_maddubs_epi16(low, load_bytes(q)));
                    const __m256i next_fours = pairs_to_fours(_mm256_maddubs_epi16(high, load_bytes(q + 32)));
                    // Both sums at once: of each 128 bits, then of their halves.
                    const __m256i eights = _mm256_hadd_epi32(first_fours, next_fours);
                    const __m256i sixteens = _mm256_hadd_epi32(eights, eights);
                    const __m128i whole =
                        _mm_add_epi32(_mm256_castsi256_si128(sixteens), _mm256_extracti128_si256(sixteens, 1));
                    const std::int32_t one = _mm_cvtsi128_si32(whole) - x.sum[b * 2];
                    const std::int32_t two = _mm_extract_epi32(whole, 1) - x.sum[b * 2 + 1];
                    const float part = std::fma(x.d[b * 2 + 1], float(two), x.d[b * 2] * float(one));
                    total[c] = std::fma(scale, part, total[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = total[c];
            }
        });
    }
}

}  // namespace bankml::avx2
