// The definition of the q8_K quantizer (quantize_row_q8_K_ref).
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/portable/portable.h"

namespace bankml::portable {
namespace {

// The nearest integer, ties to even, of a value below 2^22; of anything else the low bits of its sum with 1.5 * 2^23.
std::int32_t nearest(float value) {
    return std::int32_t(std::bit_cast<std::uint32_t>(value + 12582912.0f) & 0x7fffffu) - 0x400000;
}

// The first value of the largest magnitude.
float peak_of(const float *x) {
    float largest = 0.0f, peak = 0.0f;
    for (std::size_t i = 0; i < q8_K_values; ++i) {
        if (std::fabs(x[i]) > largest) {
            largest = std::fabs(x[i]);
            peak = x[i];
        }
    }
    return peak;
}

}  // namespace

void quantize_q8_K(std::size_t n, const float *x, std::int8_t *q, float *d, std::int16_t *sums) {
    for (std::size_t block = 0; block < n / q8_K_values;
         ++block, x += q8_K_values, q += q8_K_values, sums += q8_K_sums) {
        const float peak = peak_of(x);
        if (peak == 0.0f) {
            d[block] = 0.0f;
            std::memset(q, 0, q8_K_values);
            std::memset(sums, 0, q8_K_sums * sizeof(std::int16_t));
            continue;
        }
        const float factor = -127.0f / peak;
        for (std::size_t i = 0; i < q8_K_values; ++i) {
            const std::int32_t value = nearest(factor * x[i]);
            q[i] = std::int8_t(value > 127 ? 127 : value);
        }
        for (std::size_t s = 0; s < q8_K_sums; ++s) {
            sums[s] = 0;
            for (std::size_t i = 0; i < 16; ++i) {
                sums[s] = std::int16_t(sums[s] + q[s * 16 + i]);
            }
        }
        d[block] = 1.0f / factor;
    }
}

}  // namespace bankml::portable
