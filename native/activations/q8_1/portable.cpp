// The definition of the q8_1 quantizer (quantize_row_q8_1 of ggml's x86 code).
#include "kernels/portable/portable.h"
#include "activations/q8_0/block.h"
#include "kernels/half.h"

namespace bankml::portable {

void quantize_q8_1(std::size_t n, const float *x, std::int8_t *q, float *d, float *s) {
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        std::int32_t sum;
        const float scale = quantize_block(x, q, &sum);
        d[block] = half_to_float(float_to_half(scale));
        s[block] = half_to_float(float_to_half(scale * float(sum)));
    }
}

}  // namespace bankml::portable
