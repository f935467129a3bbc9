// The definition of the q8_0 quantizer (quantize_row_q8_0 of ggml's x86 code).
#include <cmath>

#include "activations/activation.h"
#include "kernels/half.h"
#include "kernels/portable/portable.h"

namespace bankml::portable {
namespace {

// The larger, and the second where either is no number: what the reference's instruction does.
float larger(float a, float b) { return a > b ? a : b; }

// The largest magnitude of a block: lane by lane down the four groups of eight, then halves, quarters, the pair.
float block_peak(const float *x) {
    float lane[8];
    for (int i = 0; i < 8; ++i) {
        lane[i] = std::fabs(x[i]);
        for (int j = 8; j < 32; j += 8) {
            lane[i] = larger(lane[i], std::fabs(x[j + i]));
        }
    }
    float four[4];
    for (int i = 0; i < 4; ++i) {
        four[i] = larger(lane[4 + i], lane[i]);
    }
    return larger(larger(four[0], four[2]), larger(four[1], four[3]));
}

std::int8_t pack(float scaled) {
    if (!(std::fabs(scaled) < 2147483648.0f)) {
        return -128;  // the conversion's "indefinite" value, saturated twice
    }
    const float nearest = std::nearbyint(scaled);
    return std::int8_t(nearest < -128.0f ? -128.0f : nearest > 127.0f ? 127.0f : nearest);
}

}  // namespace

void quantize_q8_0(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum) {
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        const float peak = block_peak(x);
        const float inverse = peak != 0.0f ? 127.0f / peak : 0.0f;
        d[block] = half_to_float(float_to_half(peak / 127.0f));
        sum[block] = 0;
        for (std::size_t i = 0; i < q8_0_values; ++i) {
            q[i] = pack(x[i] * inverse);
            sum[block] += q[i];
        }
    }
}

}  // namespace bankml::portable
