// The TQ1_0 product in AVX2.
#include "formats/tq1_0/tq1_0.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

// The digit at the top of each of 32 bytes.
inline __m256i top_digits(__m256i bytes) {
    const __m256i three = _mm256_set1_epi16(3), even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff));
    const __m256i low = _mm256_srli_epi16(_mm256_mullo_epi16(even, three), 8);
    const __m256i high = _mm256_mullo_epi16(_mm256_srli_epi16(bytes, 8), three);
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi16(0x0300)));
}

inline __m256i times_three(__m256i bytes) { return _mm256_add_epi8(bytes, _mm256_add_epi8(bytes, bytes)); }

struct Codec {
    static constexpr std::size_t bytes = tq1_0_bytes;
    static constexpr bool with_sign = false;
    static float scale(const std::uint8_t *block) { return half_at(block + 52); }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        __m256i power = load_bytes(block);
        for (int digit = 0; digit < 5; ++digit, power = times_three(power)) {
            to.value[digit] = top_digits(power);
        }
        // Sixteen bytes of five digits, then four of four: 96 values.
        alignas(32) std::uint8_t rest[96];
        __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block + 32));
        std::uint32_t four;
        std::memcpy(&four, block + 48, 4);
        for (int digit = 0; digit < 5; ++digit) {
            _mm_store_si128(reinterpret_cast<__m128i *>(rest + digit * 16), sixteen);
            sixteen = _mm_add_epi8(sixteen, _mm_add_epi8(sixteen, sixteen));
        }
        __m128i last = _mm_cvtsi32_si128(int(four));
        for (int digit = 0; digit < 4; ++digit) {
            const std::int32_t word = _mm_cvtsi128_si32(last);
            std::memcpy(rest + 80 + digit * 4, &word, 4);
            last = _mm_add_epi8(last, _mm_add_epi8(last, last));
        }
        for (int part = 5; part < 8; ++part) {
            to.value[part] = top_digits(load_bytes(rest + (part - 5) * 32));
        }
        for (__m256i &scale : to.scale) {
            scale = _mm256_set1_epi16(1);
        }
    }
    // Codes count from 0, weights from -1.
    static __m256i above(const std::uint8_t *, const std::int16_t *sums) { return pairs_to_fours(load_bytes(sums)); }
};

}  // namespace

void tq1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                float *y, std::size_t ldy) {
    super_lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
