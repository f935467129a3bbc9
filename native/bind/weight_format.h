// A weight type by its number, as Python gives it.
#pragma once
#include "bind/arrays.h"
#include "formats/format.h"

namespace bankml::bind {

// Raises ValueError for a number that no type has.
inline const WeightFormat &weight_format(int type) {
    const WeightFormat *format = find_weight_format(type);
    require(format != nullptr, "there is no such weight type");
    return *format;
}

}  // namespace bankml::bind
