// The types of weights that are computed with, in the order of their numbers.
#include "formats/bf16/bf16.h"
#include "formats/f16/f16.h"
#include "formats/f32/f32.h"
#include "formats/iq1_m/iq1_m.h"
#include "formats/iq1_s/iq1_s.h"
#include "formats/iq2_s/iq2_s.h"
#include "formats/iq2_xs/iq2_xs.h"
#include "formats/iq2_xxs/iq2_xxs.h"
#include "formats/iq3_s/iq3_s.h"
#include "formats/iq3_xxs/iq3_xxs.h"
#include "formats/iq4_nl/iq4_nl.h"
#include "formats/iq4_xs/iq4_xs.h"
#include "formats/mxfp4/mxfp4.h"
#include "formats/q1_0/q1_0.h"
#include "formats/q2_0/q2_0.h"
#include "formats/q2_K/q2_K.h"
#include "formats/q3_K/q3_K.h"
#include "formats/q4_0/q4_0.h"
#include "formats/q4_1/q4_1.h"
#include "formats/q4_K/q4_K.h"
#include "formats/q5_0/q5_0.h"
#include "formats/q5_1/q5_1.h"
#include "formats/q5_K/q5_K.h"
#include "formats/q6_K/q6_K.h"
#include "formats/q8_0/q8_0.h"
#include "formats/tq1_0/tq1_0.h"
#include "formats/tq2_0/tq2_0.h"

namespace bankml {
namespace {

constinit const WeightFormat *const formats[] = {
    &f32_format,     &f16_format,   &q4_0_format,   &q4_1_format,  &q5_0_format,  &q5_1_format,    &q8_0_format,
    &q2_K_format,    &q3_K_format,  &q4_K_format,   &q5_K_format,  &q6_K_format,  &iq2_xxs_format, &iq2_xs_format,
    &iq3_xxs_format, &iq1_s_format, &iq4_nl_format, &iq3_s_format, &iq2_s_format, &iq4_xs_format,  &iq1_m_format,
    &bf16_format,    &tq1_0_format, &tq2_0_format,  &mxfp4_format, &q1_0_format,  &q2_0_format,
};

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
