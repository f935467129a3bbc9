#include "formats/iq/portable.h"
#include "formats/iq3_xxs/iq3_xxs.h"

namespace bankml {

constinit const WeightFormat iq3_xxs_format = {
    .id = 18,
    .name = "IQ3_XXS",
    .block_weights = super_block,
    .block_bytes = IQ3XXSCodec::bytes,
    .activation = &q8_K_activations,
    .widen = widen_iq<IQ3XXSCodec>,
    .choose = panel_or_lanes,
    .products = {{.rows = product_of<Q8KColumn, portable::iq_lanes_rows<IQ3XXSCodec>>},
                 {.rows = product_of<Q8KColumn, portable::panel_rows<IqCodec<IQ3XXSCodec>>>}},
};

}  // namespace bankml
