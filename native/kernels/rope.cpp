#include "kernels/rope.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace bankml {

RopeShape rope_plain(std::size_t rotated, float base, float attention_factor, float factor) {
    return {rotated, base, 1.0f / factor, 0.0f, attention_factor, 0.0f, 0.0f, {}};
}

RopeShape rope_yarn(std::size_t rotated, float base, float attention_factor, float factor, const YarnScaling &yarn) {
    const int n = int(rotated);
    const auto turns_at = [&](float turns) {
        return float(n) * std::log(float(int(yarn.original_context)) / (turns * 2 * float(M_PI))) /
               (2 * std::log(base));
    };
    const float scale = 1.0f / factor, grown = 1.0f / scale;
    const auto magnitude_of = [&](float multiplier) {
        return grown <= 1.0f ? 1.0f : 0.1f * multiplier * std::log(grown) + 1.0f;
    };
    float magnitude = magnitude_of(1.0f);
    if (yarn.log_multiplier != 0.0f) {
        magnitude /= magnitude_of(yarn.log_multiplier);
    }
    // Taken out here and put back, rounded once more, where the table is made.
    magnitude *= 1.0f / (1.0f + 0.1f * std::log(grown));
    magnitude *= attention_factor;
    return {rotated,
            base,
            scale,
            1.0f,
            magnitude,
            std::max(0.0f, std::floor(turns_at(yarn.beta_fast))),
            std::min(float(n - 1), std::ceil(turns_at(yarn.beta_slow))),
            {}};
}

void rope_table(const RopeShape &shape, std::size_t first, std::size_t n, float *table) {
    const float step = std::pow(shape.base, -2.0f / float(shape.rotated));
    for (std::size_t i = 0; i < n; ++i, table += shape.rotated) {
        float theta = float(first + i);
        for (std::size_t j = 0; j < shape.rotated; j += 2) {
            const float plain = shape.factors.empty() ? theta : theta / shape.factors[j / 2];
            float angle = shape.frequency_scale * plain, magnitude = shape.magnitude;
            if (shape.extrapolation != 0.0f) {  // YaRN: a mix by frequency of interpolated and plain angles
                const float y = (float(j / 2) - shape.ramp_low) / std::max(0.001f, shape.ramp_high - shape.ramp_low);
                const float mix = (1.0f - std::min(1.0f, std::max(0.0f, y))) * shape.extrapolation;
                angle = std::fma(angle, 1.0f - mix, plain * mix);
                magnitude *= std::fma(0.1f, std::log(1.0f / shape.frequency_scale), 1.0f);
            }
            table[j] = std::cos(angle) * magnitude;
            table[j + 1] = std::sin(angle) * magnitude;
            theta *= step;
        }
    }
}

void rope_rotate(Pool &pool, const float *table, std::size_t rotated, bool neox, std::size_t n, std::size_t heads,
                 std::size_t head_size, float *x, std::size_t ldx) {
    const Kernels &kernel = kernels();
    pool.run(n, [&](std::size_t i, std::size_t) {
        kernel.rotate(table + i * rotated, rotated, neox, heads, head_size, x + i * ldx);
    });
}

}  // namespace bankml
