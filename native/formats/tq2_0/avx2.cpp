// The TQ2_0 product in AVX2.
#include "formats/tq2_0/tq2_0.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = tq2_0_bytes;
    static constexpr bool with_sign = false;
    static float scale(const std::uint8_t *block) { return half_at(block + 64); }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        unpack_two_bits(block, to.value);
        for (__m256i &scale : to.scale) {
            scale = _mm256_set1_epi16(1);
        }
    }
    // Codes count from 0, weights from -1.
    static __m256i above(const std::uint8_t *, const std::int16_t *sums) { return pairs_to_fours(load_bytes(sums)); }
};

}  // namespace

void tq2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                float *y, std::size_t ldy) {
    super_lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
