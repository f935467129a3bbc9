// What IQ1_S and IQ1_M decode to: for each 32 weights four groups of eight values from -1 to 1, whether an eighth is
// taken off each group's values or added to them, and two scales.
#pragma once
#include "formats/iq/part.h"

namespace bankml {

struct Iq1Part {
    std::uint64_t groups[4];
    bool minus[4];
    int scales[2];  // of 16 values each, odd
};

inline constexpr float iq1_eighth = 0.125f;

}  // namespace bankml
