// The Q5_1 product in AVX2.
#include "formats/q5_1/q5_1.h"

#include "formats/avx2_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 24;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static float minimum(const std::uint8_t *block) { return half_at(block + 2); }
    static __m256i load(const std::uint8_t *block) {
        const __m256i fifth = _mm256_and_si256(load_bits(block + 4), _mm256_set1_epi8(16));
        return _mm256_or_si256(load_nibbles(block + 8), fifth);
    }
};

}  // namespace

void q5_1_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8_1Column *columns, std::size_t n,
               float *y, std::size_t ldy) {
    minimum_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
