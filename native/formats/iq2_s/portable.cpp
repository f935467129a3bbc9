#include "formats/iq/portable.h"
#include "formats/iq2_s/iq2_s.h"

namespace bankml {

constinit const WeightFormat iq2_s_format = {
    .id = 22,
    .name = "IQ2_S",
    .block_weights = super_block,
    .block_bytes = IQ2SCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq<IQ2SCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq_lanes_rows<IQ2SCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<IqCodec<IQ2SCodec>>>}},
};

}  // namespace bankml
