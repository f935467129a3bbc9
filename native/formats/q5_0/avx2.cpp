// The Q5_0 product in AVX2.
#include "formats/q5_0/q5_0.h"

#include "formats/avx2_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 22;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static __m256i load(const std::uint8_t *block) {
        const __m256i absent = _mm256_andnot_si256(load_bits(block + 2), _mm256_set1_epi8(char(0xf0)));
        return _mm256_or_si256(load_nibbles(block + 6), absent);  // nibble - 16 where the bit is 0
    }
};

}  // namespace

void q5_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
