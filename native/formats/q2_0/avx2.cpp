// The Q2_0 product in AVX2.
#include <cmath>

#include "formats/q2_0/q2_0.h"
#include "kernels/avx2/bytes.h"

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
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q2_0_block_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f;
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q2_0_block_bytes;
                float part = 0.0f;
                for (std::size_t j = 0; j < 2; ++j) {
                    const __m256i q = load_bytes(columns[c].q + b * q2_0_weights + j * 32);
                    const __m256i pairs = _mm256_maddubs_epi16(spread_codes(block + 2 + j * 8), q);
                    const std::int32_t whole = sum_all(_mm256_madd_epi16(pairs, ones)) - columns[c].sum[b * 2 + j];
                    part = std::fma(columns[c].d[b * 2 + j], float(whole), part);
                }
                total = std::fma(widen_one(block_scale(block)), part, total);
            }
            y[c * ldy + r] = total;
        }
    }
}

}  // namespace bankml::avx2
