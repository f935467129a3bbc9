// The Q1_0 product in AVX2.
#include <cmath>

#include "formats/avx2_blocks.h"
#include "formats/q1_0/q1_0.h"

namespace bankml::avx2 {
namespace {

// 32 bits to 32 bytes: 0xff where the bit is 0.
inline __m256i absent_bits(const std::uint8_t *bits) {
    std::int32_t word;
    std::memcpy(&word, bits, 4);
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                                            3, 3, 3, 3, 3, 3, 3);
    const __m256i each = _mm256_set1_epi64x(std::int64_t(0x8040201008040201ull));
    const __m256i picked = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), each);
    return _mm256_cmpeq_epi8(picked, _mm256_setzero_si256());
}

}  // namespace

void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q1_0_weights;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q1_0_block_bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q1_0_block_bytes;
                __m256 part[C];
                for (std::size_t j = 0; j < 4; ++j) {
                    const __m256i absent = absent_bits(block + 2 + j * 4);
                    for (std::size_t c = 0; c < C; ++c) {
                        const Q8Column &x = columns[first + c];
                        const __m256i q = load_bytes(x.q + b * q1_0_weights + j * 32);
                        const __m256i signed_q = _mm256_sub_epi8(_mm256_xor_si256(q, absent), absent);
                        const __m256 four = _mm256_cvtepi32_ps(sum_fours(signed_q));
                        const __m256 d = _mm256_set1_ps(x.d[b * 4 + j]);
                        part[c] = j == 0 ? _mm256_mul_ps(d, four) : _mm256_fmadd_ps(d, four, part[c]);
                    }
                }
                const __m256 scale = _mm256_set1_ps(widen_one(block_scale(block)));
                for (std::size_t c = 0; c < C; ++c) {
                    acc[c] = _mm256_fmadd_ps(scale, part[c], acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]);
            }
        });
    }
}

}  // namespace bankml::avx2
