#include "formats/iq/portable.h"
#include "formats/iq3_s/iq3_s.h"

namespace bankml {

constinit const WeightFormat iq3_s_format = {
    .id = 21,
    .name = "IQ3_S",
    .block_weights = super_block,
    .block_bytes = IQ3SCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq<IQ3SCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq_lanes_rows<IQ3SCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<IqCodec<IQ3SCodec>>>}},
};

}  // namespace bankml
