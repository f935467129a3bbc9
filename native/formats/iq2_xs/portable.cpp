#include "formats/iq/portable.h"
#include "formats/iq2_xs/iq2_xs.h"

namespace bankml {

constinit const WeightFormat iq2_xs_format = {
    .id = 17,
    .name = "IQ2_XS",
    .block_weights = super_block,
    .block_bytes = IQ2XSCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq<IQ2XSCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq_lanes_rows<IQ2XSCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<IqCodec<IQ2XSCodec>>>}},
};

}  // namespace bankml
