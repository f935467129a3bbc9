// The IQ2_XS products in AVX2.
#include "formats/iq2_xs/iq2_xs.h"

#include "formats/avx2_panel.h"
#include "formats/iq/avx2.h"

namespace bankml::avx2 {

void iq2_xs_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                       float *y, std::size_t ldy) {
    iq_lanes_rows<IQ2XSCodec>(w, rows, k, columns, n, y, ldy);
}

void iq2_xs_panel_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                        float *y, std::size_t ldy, float *scratch) {
    panel_block<IqCodec<IQ2XSCodec>>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan iq2_xs_panel_plan(std::size_t k) { return interleaved_panel_plan(k); }

}  // namespace bankml::avx2
