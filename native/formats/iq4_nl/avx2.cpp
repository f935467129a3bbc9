// The IQ4_NL product in AVX2.
#include "formats/iq4_nl/iq4_nl.h"

#include "formats/avx2_interleaved.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 18;
    static constexpr bool short_sums = false;
    static constexpr int offset = 0;
    static constexpr bool short_pairs = false;
    static __m256i load_codes(const std::uint8_t *block) { return load(block); }
    static __m256 scales(const std::uint8_t *w, std::size_t row) { return half_scales(w, row); }
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static __m256i load(const std::uint8_t *block) { return look_up(iq4_values, load_nibbles(block + 2)); }
};

}  // namespace

void iq4_nl_chain_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                       float *y, std::size_t ldy) {
    chain_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void iq4_nl_pairs_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                       float *y, std::size_t ldy) {
    pairs_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void iq4_nl_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                       float *y, std::size_t ldy) {
    lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void iq4_nl_chain_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                        float *y, std::size_t ldy, float *scratch) {
    chain_block<Codec>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan iq4_nl_plan(std::size_t k) { return chain_plan(k); }

}  // namespace bankml::avx2
