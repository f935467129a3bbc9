// The groups of values that IQ types index, eight bytes or four to a group, and what goes with them.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "formats/iq/codes.h"

namespace bankml {

// Groups out of their codes: digits in base `base`, the first value in the lowest.
template <class Group, std::size_t count, std::size_t base>
constexpr std::array<Group, count> groups_of(const std::uint16_t (&codes)[count], const std::int8_t (&digits)[base]) {
    std::array<Group, count> found{};
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t code = codes[i];
        for (std::size_t byte = 0; byte < sizeof(Group); ++byte, code /= base) {
            found[i] |= Group(std::uint8_t(digits[code % base])) << (8 * byte);
        }
    }
    return found;
}

inline constexpr std::int8_t iq2_digits[3] = {8, 25, 43}, iq1_digits[3] = {-1, 0, 1};
inline constexpr std::int8_t iq3_xxs_digits[8] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::int8_t iq3_s_digits[8] = {1, 3, 5, 7, 9, 11, 13, 15};

inline constexpr auto iq2_xxs_grid = groups_of<std::uint64_t>(iq2_xxs_codes, iq2_digits);
inline constexpr auto iq2_xs_grid = groups_of<std::uint64_t>(iq2_xs_codes, iq2_digits);
inline constexpr auto iq2_s_grid = groups_of<std::uint64_t>(iq2_s_codes, iq2_digits);
inline constexpr auto iq3_xxs_grid = groups_of<std::uint32_t>(iq3_xxs_codes, iq3_xxs_digits);
inline constexpr auto iq3_s_grid = groups_of<std::uint32_t>(iq3_s_codes, iq3_s_digits);
inline constexpr auto iq1_grid = groups_of<std::uint64_t>(iq1_codes, iq1_digits);

// Eight signs out of seven: their number is even.
constexpr std::uint8_t even_signs(std::uint32_t seven) {
    return std::uint8_t((seven & 127) | (std::uint32_t(std::popcount(seven & 127)) & 1) << 7);
}

// Four times eight signs out of the low 28 bits of a word.
constexpr std::uint32_t even_sign_bytes(std::uint32_t word) {
    return std::uint32_t(even_signs(word)) | std::uint32_t(even_signs(word >> 7)) << 8 |
           std::uint32_t(even_signs(word >> 14)) << 16 | std::uint32_t(even_signs(word >> 21)) << 24;
}

}  // namespace bankml
