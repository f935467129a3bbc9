// IEEE binary16 <-> binary32, one value at a time: round to nearest even, NaN payloads kept and quieted, as F16C does.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace bankml {

inline float half_to_float(std::uint16_t h) {
    const std::uint32_t sign = std::uint32_t(h & 0x8000u) << 16;
    const std::uint32_t exponent = (h >> 10) & 0x1fu;
    std::uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0x1f) {
        const std::uint32_t quiet = mantissa ? 0x400000u : 0u;
        return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
    }
    if (exponent == 0) {
        const float magnitude = std::ldexp(float(mantissa), -24);
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline std::uint16_t float_to_half(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint16_t sign = std::uint16_t((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return std::uint16_t(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    }
    if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more: infinity
        return std::uint16_t(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) {  // below 2^-14: a subnormal, counted in steps of 2^-24
        // The float add of 0.5 drops everything below 2^-24, rounding to nearest even.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
    }
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    return std::uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

}  // namespace bankml
