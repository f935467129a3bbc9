// The q8_1 quantizer in AVX2.
#include "kernels/avx2/avx2.h"
#include "activations/q8_0/avx2_block.h"

namespace bankml::avx2 {

void quantize_q8_1(std::size_t n, const float *x, std::int8_t *q, float *d, float *s) {
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        std::int32_t sum;
        const float scale = quantize_block(x, q, &sum);
        d[block] = widen_one(_cvtss_sh(scale, _MM_FROUND_TO_NEAREST_INT));
        s[block] = widen_one(_cvtss_sh(scale * float(sum), _MM_FROUND_TO_NEAREST_INT));
    }
}

}  // namespace bankml::avx2
