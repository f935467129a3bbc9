// The IQ3_XXS products in AVX2.
#include "formats/iq3_xxs/iq3_xxs.h"

#include "formats/avx2_panel.h"
#include "formats/iq/avx2.h"

namespace bankml::avx2 {

void iq3_xxs_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                        float *y, std::size_t ldy) {
    iq_lanes_rows<IQ3XXSCodec>(w, rows, k, columns, n, y, ldy);
}

void iq3_xxs_panel_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns,
                         std::size_t n, float *y, std::size_t ldy, float *scratch) {
    panel_block<IqCodec<IQ3XXSCodec>>(w, rows, k, columns, n, y, ldy, scratch);
}

BlockPlan iq3_xxs_panel_plan(std::size_t k) { return interleaved_panel_plan(k); }

}  // namespace bankml::avx2
