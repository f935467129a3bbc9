#include "formats/iq/iq1_portable.h"
#include "formats/iq1_s/iq1_s.h"

namespace bankml {

constinit const WeightFormat iq1_s_format = {
    .id = 19,
    .name = "IQ1_S",
    .block_weights = super_block,
    .block_bytes = IQ1SCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq1<IQ1SCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq1_lanes_rows<IQ1SCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<Iq1Codec<IQ1SCodec>>>}},
};

}  // namespace bankml
