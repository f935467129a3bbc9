// The Q8_0 product in AVX2.
#include "formats/q8_0/q8_0.h"

#include "formats/avx2_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 34;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static __m256i load(const std::uint8_t *block) { return load_bytes(block + 2); }
};

}  // namespace

void q8_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
