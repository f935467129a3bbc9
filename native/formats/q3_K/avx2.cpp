// The Q3_K product in AVX2.
#include "formats/q3_K/q3_K.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = q3_K_bytes;
    static constexpr bool with_sign = true;
    static float scale(const std::uint8_t *block) { return half_at(block + 108); }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        const __m256i high = load_bytes(block);
        unpack_two_bits(block + 32, to.value);
#pragma GCC unroll 8
        for (int part = 0; part < 8; ++part) {  // 4 less where the part's bit is 0
            const __m256i bit = _mm256_set1_epi8(char(1 << part));
            const __m256i absent = _mm256_cmpeq_epi8(_mm256_and_si256(high, bit), _mm256_setzero_si256());
            to.value[part] = _mm256_sub_epi8(to.value[part], _mm256_and_si256(absent, _mm256_set1_epi8(4)));
        }
        std::uint32_t word[3];
        std::memcpy(word, block + 96, 12);
        const std::uint32_t four = 0x0f0f0f0f, two = 0x03030303;
        const __m128i bytes = _mm_setr_epi32(int((word[0] & four) | (word[2] & two) << 4),
                                             int((word[1] & four) | (word[2] >> 2 & two) << 4),
                                             int((word[0] >> 4 & four) | (word[2] >> 4 & two) << 4),
                                             int((word[1] >> 4 & four) | (word[2] >> 6 & two) << 4));
        spread_group_scales(_mm_sub_epi8(bytes, _mm_set1_epi8(32)), to.scale);
    }
};

}  // namespace

void q3_K_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
               float *y, std::size_t ldy) {
    super_lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
