// The IQ1_S products in AVX2.
#include "formats/iq1_s/iq1_s.h"

#include "formats/iq/iq1_avx2.h"

namespace bankml::avx2 {

void iq1_s_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    iq1_lanes_rows<IQ1SCodec>(w, rows, k, columns, n, y, ldy);
}

void iq1_s_panel_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                      float *y, std::size_t ldy) {
    panel_rows<Iq1Codec<IQ1SCodec>>(w, rows, k, columns, n, y, ldy);
}

}  // namespace bankml::avx2
