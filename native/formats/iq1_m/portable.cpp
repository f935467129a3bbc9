#include "formats/iq/iq1_portable.h"
#include "formats/iq1_m/iq1_m.h"

namespace bankml {

constinit const WeightFormat iq1_m_format = {
    .id = 29,
    .name = "IQ1_M",
    .block_weights = super_block,
    .block_bytes = IQ1MCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq1<IQ1MCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq1_lanes_rows<IQ1MCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<Iq1Codec<IQ1MCodec>>>}},
};

}  // namespace bankml
