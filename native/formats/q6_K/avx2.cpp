// The Q6_K product in AVX2.
#include "formats/q6_K/q6_K.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = q6_K_bytes;
    static constexpr bool with_sign = false;
    static float scale(const std::uint8_t *block) { return half_at(block + 208); }
    static __m128i scales(const std::uint8_t *block) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 192));
    }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        const __m256i four = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
#pragma GCC unroll 8
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
        spread_group_scales(scales(block), to.scale);
    }
    // The 32 that every value is too large by.
    static __m256i above(const std::uint8_t *block, const std::int16_t *sums) {
        return _mm256_slli_epi32(_mm256_madd_epi16(load_bytes(sums), _mm256_cvtepi8_epi16(scales(block))), 5);
    }
};

}  // namespace

void q6_K_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
               float *y, std::size_t ldy) {
    super_lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
