// The Q6_K product in AVX2.
#include "formats/q6_K/q6_K.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

inline void unpack(const std::uint8_t *block, __m128i scales, UnpackedBlock &to) {
    const __m256i four = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    for (int half = 0; half < 2; ++half) {
        const __m256i low = load_bytes(block + half * 64), next = load_bytes(block + half * 64 + 32);
        const __m256i high = load_bytes(block + 128 + half * 32);
        __m256i *value = to.value + half * 4;
        const auto join = [&](__m256i nibbles, __m256i bits) {
            return _mm256_or_si256(_mm256_and_si256(nibbles, four), _mm256_and_si256(bits, two));
        };
        value[0] = join(low, _mm256_slli_epi16(high, 4));
        value[1] = join(next, _mm256_slli_epi16(high, 2));
        value[2] = join(_mm256_srli_epi16(low, 4), high);
        value[3] = join(_mm256_srli_epi16(next, 4), _mm256_srli_epi16(high, 2));
    }
    for (int part = 0; part < 8; ++part) {  // two groups' scales, each for eight 16-bit sums
        const __m128i pair = _mm_shuffle_epi8(
            scales, _mm_setr_epi8(char(2 * part), char(2 * part), char(2 * part), char(2 * part), char(2 * part),
                                  char(2 * part), char(2 * part), char(2 * part), char(2 * part + 1),
                                  char(2 * part + 1), char(2 * part + 1), char(2 * part + 1), char(2 * part + 1),
                                  char(2 * part + 1), char(2 * part + 1), char(2 * part + 1)));
        to.scale[part] = _mm256_cvtepi8_epi16(pair);
    }
}

}  // namespace

void q6_K_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
               float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q6_K_bytes) {
        for_columns<8>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q6_K_bytes;
                const __m128i scales = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 192));
                const __m256i wide = _mm256_cvtepi8_epi16(scales);
                const float d = half_at(block + 208);
                UnpackedBlock unpacked;
                unpack(block, scales, unpacked);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8KColumn &x = columns[first + c];
                    const __m256i sums = load_bytes(x.sums + b * q8_K_sums);
                    // The 32 that every value is too large by.
                    const __m256i above = _mm256_slli_epi32(_mm256_madd_epi16(sums, wide), 5);
                    const __m256i exact = _mm256_sub_epi32(lane_sums(unpacked, x.q + b * super_block), above);
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(x.d[b] * d), _mm256_cvtepi32_ps(exact), acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]);
            }
        });
    }
}

}  // namespace bankml::avx2
