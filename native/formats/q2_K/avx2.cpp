// The Q2_K product in AVX2.
#include "formats/q2_K/q2_K.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

inline void unpack(const std::uint8_t *block, UnpackedBlock &to) {
    const __m128i scales = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block));
    unpack_two_bits(block + 16, to.value);
    spread_group_scales(_mm_and_si128(scales, _mm_set1_epi8(15)), to.scale);
}

// The sums of 16 activations times their minimum, two groups a lane.
inline __m256i group_minima_sums(const std::uint8_t *block, const std::int16_t *sums) {
    const __m128i scales = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block));
    const __m128i minima = _mm_and_si128(_mm_srli_epi16(scales, 4), _mm_set1_epi8(15));
    return _mm256_madd_epi16(_mm256_cvtepi8_epi16(minima), load_bytes(sums));
}

}  // namespace

void q2_K_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
               float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q2_K_bytes) {
        for_columns<8>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q2_K_bytes;
                const float d = half_at(block + 80), dmin = half_at(block + 82);
                UnpackedBlock unpacked;
                unpack(block, unpacked);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8KColumn &x = columns[first + c];
                    const __m256 below = _mm256_cvtepi32_ps(group_minima_sums(block, x.sums + b * q8_K_sums));
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(-x.d[b] * dmin), below, acc[c]);
                    const __m256 sums = _mm256_cvtepi32_ps(lane_sums(unpacked, x.q + b * super_block));
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(x.d[b] * d), sums, acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]);
            }
        });
    }
}

}  // namespace bankml::avx2
