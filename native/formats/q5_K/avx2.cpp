// The Q5_K product in AVX2.
#include "formats/q5_K/q5_K.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

inline void unpack(const std::uint8_t *block, __m128i scales, UnpackedBlock &to) {
    const __m256i four = _mm256_set1_epi8(15), sixteen = _mm256_set1_epi8(16);
    const __m256i high = load_bytes(block + 16);
    spread_scales(scales, to.scale);
#pragma GCC unroll 8
    for (int pair = 0; pair < 4; ++pair) {
        const __m256i nibbles = load_bytes(block + 48 + pair * 32);
        // The part's bit of every byte, at bit 4.
        const __m256i up = pair < 2 ? _mm256_slli_epi16(high, 4 - 2 * pair) : _mm256_srli_epi16(high, 2 * pair - 4);
        const __m256i next = pair < 2 ? _mm256_slli_epi16(high, 3 - 2 * pair) : _mm256_srli_epi16(high, 2 * pair - 3);
        to.value[2 * pair] = _mm256_or_si256(_mm256_and_si256(nibbles, four), _mm256_and_si256(up, sixteen));
        to.value[2 * pair + 1] =
            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(nibbles, 4), four), _mm256_and_si256(next, sixteen));
    }
}

}  // namespace

void q5_K_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
               float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q5_K_bytes) {
        for_columns<8>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            float minima[C] = {};
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q5_K_bytes;
                const __m128i scales = unpack_scales(block + 4);
                const float d = half_at(block), dmin = half_at(block + 2);
                UnpackedBlock unpacked;
                unpack(block, scales, unpacked);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8KColumn &x = columns[first + c];
                    const std::int32_t below = sum_four(minima_sums(scales, x.sums + b * q8_K_sums));
                    minima[c] = std::fma(-x.d[b] * dmin, float(below), minima[c]);
                    const __m256 sums = _mm256_cvtepi32_ps(lane_sums(unpacked, x.q + b * super_block));
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(x.d[b] * d), sums, acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]) + minima[c];
            }
        });
    }
}

}  // namespace bankml::avx2
