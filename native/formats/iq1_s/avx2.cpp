// The IQ1_S products in AVX2.
#include "formats/iq1_s/iq1_s.h"

#include "formats/avx2_panel.h"
#include "formats/iq/iq1_avx2.h"

namespace bankml::avx2 {

void iq1_s_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    iq1_lanes_rows<IQ1SCodec>(w, rows, k, columns, n, y, ldy);
}

void iq1_s_panel_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                       float *y, std::size_t ldy, float *scratch) {
    panel_block<Iq1Codec<IQ1SCodec>>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan iq1_s_panel_plan(std::size_t k) { return interleaved_panel_plan(k); }

}  // namespace bankml::avx2
