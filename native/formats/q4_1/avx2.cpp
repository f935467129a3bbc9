// The Q4_1 product in AVX2.
#include "formats/q4_1/q4_1.h"

#include "formats/avx2_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 20;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static float minimum(const std::uint8_t *block) { return half_at(block + 2); }
    static __m256i load(const std::uint8_t *block) { return load_nibbles(block + 4); }
};

}  // namespace

void q4_1_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8_1Column *columns, std::size_t n,
               float *y, std::size_t ldy) {
    minimum_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
