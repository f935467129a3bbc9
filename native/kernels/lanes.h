// What the portable definition shares: exp as the reference's vector code computes it, and the eight-lane sum.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace bankml {

// exp by the polynomial of Arm's optimized routines, every step as the AVX2 code takes it (fused where that fuses).
inline float polynomial_exp(float x) {
    const float round = 0x1.8p23f;
    const float z = std::fma(x, 0x1.715476p+0f, round);
    const float n = z - round;
    const float b = std::fma(-n, 0x1.7f7d1cp-20f, std::fma(-n, 0x1.62e4p-1f, x));
    const std::uint32_t e = std::bit_cast<std::uint32_t>(z) << 23;
    const float k = std::bit_cast<float>(e + 0x3f800000u);
    const float u = b * b;
    const float high =
        std::fma(std::fma(0x1.0e4020p-7f, b, 0x1.573e2ep-5f), u, std::fma(0x1.555e66p-3f, b, 0x1.fffdb6p-2f));
    const float j = std::fma(high, u, 0x1.ffffecp-1f * b);
    const float size = std::fabs(n);
    if (!(size > 126.0f)) {
        return std::fma(j, k, k);
    }
    // The result leaves the range of normal numbers: scale in two steps.
    const std::uint32_t g = n <= 0.0f ? 0x82000000u : 0u;
    const float s1 = std::bit_cast<float>(g + 0x7f000000u);
    const float s2 = std::bit_cast<float>(e - g);
    return size > 192.0f ? s1 * s1 : std::fma(s2, j, s2) * s1;
}

// ((0+4)+(2+6)) + ((1+5)+(3+7)): halves, then quarters, then the pair.
inline float sum_lanes(const float *lane) {
    const float t0 = lane[0] + lane[4], t1 = lane[1] + lane[5], t2 = lane[2] + lane[6], t3 = lane[3] + lane[7];
    return (t0 + t2) + (t1 + t3);
}

// ((0+4)+(1+5)) + ((2+6)+(3+7)): halves, then neighbours.
inline float sum_neighbour_lanes(const float *lane) {
    const float t0 = lane[0] + lane[4], t1 = lane[1] + lane[5], t2 = lane[2] + lane[6], t3 = lane[3] + lane[7];
    return (t0 + t1) + (t2 + t3);
}

}  // namespace bankml
