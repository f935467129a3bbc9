// The MXFP4 product in AVX2.
#include "formats/mxfp4/mxfp4.h"

#include "formats/avx2_interleaved.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 17;
    static constexpr bool short_sums = false;
    static constexpr int offset = 0;
    static constexpr bool short_pairs = true;  // eight of at most 2 * 12 * 128
    static __m256i load_codes(const std::uint8_t *block) { return load(block); }
    static __m256 scales(const std::uint8_t *w, std::size_t row) {
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < 8; ++i) {
            bytes |= std::uint64_t(w[i * row]) << (8 * i);
        }
        const __m256i e = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(std::int64_t(bytes))), one = _mm256_set1_epi32(1);
        const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
        const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
        return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, one)));
    }
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

void mxfp4_chain_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                       float *y, std::size_t ldy, float *scratch) {
    chain_block<Codec>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan mxfp4_plan(std::size_t k) { return chain_plan(k); }

}  // namespace bankml::avx2
