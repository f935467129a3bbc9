// bfloat16 <-> binary32 (ggml_compute_fp32_to_bf16): round to nearest even, NaNs quieted.
#pragma once
#include <bit>
#include <cstdint>

namespace bankml {

inline float bfloat_to_float(std::uint16_t b) { return std::bit_cast<float>(std::uint32_t(b) << 16); }

inline std::uint16_t float_to_bfloat(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return std::uint16_t(bits >> 16 | 64);
    }
    return std::uint16_t((bits + (0x7fffu + (bits >> 16 & 1))) >> 16);
}

}  // namespace bankml
