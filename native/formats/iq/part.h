// What every IQ2 and IQ3 type decodes to: for each 32 weights four groups of eight values, their signs, and two scales.
// One `read_part` a type serves the definition and the instruction sets.
#pragma once
#include <cstring>

#include "formats/format.h"
#include "formats/iq/grids.h"

namespace bankml {

struct IqPart {
    std::uint64_t groups[4];
    std::uint32_t signs;  // a bit a value: 1 is minus
    int scales[2];        // of 16 values each, odd
};

template <class Word>
Word word_at(const std::uint8_t *p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

constexpr std::uint64_t two_groups(std::uint32_t low, std::uint32_t high) { return low | std::uint64_t(high) << 32; }

}  // namespace bankml
