// The q8_0 quantizer in AVX2.
#include "kernels/avx2/avx2.h"
#include "activations/q8_0/avx2_block.h"

namespace bankml::avx2 {

void quantize_q8_0(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum) {
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        std::int32_t unsaturated;
        d[block] = widen_one(_cvtss_sh(quantize_block(x, q, &unsaturated), _MM_FROUND_TO_NEAREST_INT));
        sum[block] = sum_all(sum_fours(load_bytes(q)));
    }
}

}  // namespace bankml::avx2
