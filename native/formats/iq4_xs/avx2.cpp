// The IQ4_XS product in AVX2.
#include "formats/iq4_xs/iq4_xs.h"

#include "formats/avx2_panel.h"
#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

struct Codec {
    static constexpr std::size_t bytes = iq4_xs_bytes;
    static constexpr bool with_sign = true;
    static float scale(const std::uint8_t *block) { return half_at(block); }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        const unsigned high = block_scale(block + 2);
#pragma GCC unroll 8
        for (unsigned part = 0; part < 8; ++part) {
            to.value[part] = look_up(iq4_values, load_nibbles(block + 8 + part * 16));
            const unsigned low = block[4 + part / 2] >> (part % 2 * 4) & 15;
            to.scale[part] = _mm256_set1_epi16(std::int16_t(int(low | (high >> (part * 2) & 3) << 4) - 32));
        }
    }
};

}  // namespace

void iq4_xs_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                       float *y, std::size_t ldy) {
    super_lanes_rows<Codec>(w, rows, k, columns, n, y, ldy);
}

void iq4_xs_panel_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                        float *y, std::size_t ldy, float *scratch) {
    panel_block<Codec>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan iq4_xs_panel_plan(std::size_t k) { return interleaved_panel_plan(k); }

}  // namespace bankml::avx2
