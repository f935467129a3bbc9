#include "formats/iq/portable.h"
#include "formats/iq2_xxs/iq2_xxs.h"

namespace bankml {

constinit const WeightFormat iq2_xxs_format = {
    .id = 16,
    .name = "IQ2_XXS",
    .block_weights = super_block,
    .block_bytes = IQ2XXSCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq<IQ2XXSCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq_lanes_rows<IQ2XXSCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<IqCodec<IQ2XXSCodec>>>}},
};

}  // namespace bankml
