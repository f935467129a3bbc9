// The types of weights that are computed with.
#include "formats/f16/f16.h"
#include "formats/format.h"
#include "formats/q1_0/q1_0.h"
#include "formats/q2_0/q2_0.h"
#include "formats/q4_0/q4_0.h"
#include "formats/q4_K/q4_K.h"
#include "formats/q5_K/q5_K.h"
#include "formats/q6_K/q6_K.h"
#include "formats/q8_0/q8_0.h"

namespace bankml {
namespace {

constinit const WeightFormat *const formats[] = {&f16_format,  &q4_0_format, &q8_0_format, &q4_K_format,
                                                 &q5_K_format, &q6_K_format, &q1_0_format, &q2_0_format};

}  // namespace

std::span<const WeightFormat *const> weight_formats() { return formats; }

const WeightFormat *find_weight_format(int id) {
    for (const WeightFormat *format : formats) {
        if (format->id == id) {
            return format;
        }
    }
    return nullptr;
}

}  // namespace bankml
