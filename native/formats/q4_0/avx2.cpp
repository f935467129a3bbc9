// The Q4_0 products in AVX2.
#include "formats/q4_0/q4_0.h"

#include "formats/avx2_interleaved.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 18;
    static constexpr bool short_sums = true;  // from 32 * 8 * -128 to 32 * 8 * 127
    static constexpr int offset = 8;
    static constexpr bool short_pairs = true;
    static __m256i load_codes(const std::uint8_t *block) { return load_nibbles(block + 2); }
    static __m256 scales(const std::uint8_t *w, std::size_t row) { return half_scales(w, row); }
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static __m256i load(const std::uint8_t *block) {
        return _mm256_sub_epi8(load_nibbles(block + 2), _mm256_set1_epi8(8));
    }
};

}  // namespace

void q4_0_chain_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                     float *y, std::size_t ldy) {
    chain_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void q4_0_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                     float *y, std::size_t ldy) {
    lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void q4_0_chain_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                      float *y, std::size_t ldy, float *scratch) {
    chain_block<Codec>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan q4_0_plan(std::size_t k) { return chain_plan(k); }

}  // namespace bankml::avx2
