// One block of q8_0 and q8_1: 32 values.
#pragma once
#include "activations/activation.h"

namespace bankml::portable {

// Writes q, and the sum of the integers before they are saturated to bytes; returns the scale before it is rounded to
// f16.
float quantize_block(const float *x, std::int8_t *q, std::int32_t *sum);

}  // namespace bankml::portable
