// The IQ3_XXS products in AVX2.
#include "formats/iq3_xxs/iq3_xxs.h"

#include "formats/iq/avx2.h"

namespace bankml::avx2 {

void iq3_xxs_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                        float *y, std::size_t ldy) {
    iq_lanes_rows<IQ3XXSCodec>(w, rows, k, columns, n, y, ldy);
}

void iq3_xxs_panel_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                        float *y, std::size_t ldy) {
    panel_rows<IqCodec<IQ3XXSCodec>>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
