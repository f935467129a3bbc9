// The MXFP4 product in AVX2.
#include "formats/mxfp4/mxfp4.h"

#include "formats/avx2_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 17;
    static constexpr bool short_sums = false;
    static float scale(const std::uint8_t *block) { return mxfp4_scale(block[0]); }
    static __m256i load(const std::uint8_t *block) { return look_up(mxfp4_values, load_nibbles(block + 1)); }
};

}  // namespace

void mxfp4_chain_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    chain_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void mxfp4_pairs_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    pairs_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
