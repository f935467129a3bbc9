// The definition of the q8_0 quantizer (quantize_row_q8_0 of ggml's x86 code).
#include <cmath>

#include "activations/q8_0/block.h"
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

// The conversion's "indefinite" value where there is no such integer.
std::int32_t nearest(float scaled) {
    return std::fabs(scaled) < 2147483648.0f ? std::int32_t(std::nearbyint(scaled)) : INT32_MIN;
}

std::int8_t saturated(std::int32_t value) { return std::int8_t(value < -128 ? -128 : value > 127 ? 127 : value); }

}  // namespace

float quantize_block(const float *x, std::int8_t *q, std::int32_t *sum) {
    const float peak = block_peak(x);
    const float inverse = peak != 0.0f ? 127.0f / peak : 0.0f;
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < q8_0_values; ++i) {
        const std::int32_t value = nearest(x[i] * inverse);
        total += std::uint32_t(value);
        q[i] = saturated(value);
    }
    *sum = std::int32_t(total);
    return peak / 127.0f;
}

void quantize_q8_0(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum) {
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        std::int32_t unsaturated;
        d[block] = half_to_float(float_to_half(quantize_block(x, q, &unsaturated)));
        sum[block] = 0;
        for (std::size_t i = 0; i < q8_0_values; ++i) {
            sum[block] += q[i];
        }
    }
}

}  // namespace bankml::portable
