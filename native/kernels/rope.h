// Rotary positions.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/pool.h"

namespace bankml {

struct RopeShape {
    std::size_t rotated;    // values of a head that turn, even
    float base;             // frequency base
    float frequency_scale;  // 1 / factor under linear interpolation
    float extrapolation;    // 0: none, 1: YaRN's mix
    float magnitude;        // attention factor
    float ramp_low, ramp_high;
    std::vector<float> factors;  // each pair's angle is divided by its own; none: by 1
};

struct YarnScaling {
    std::size_t original_context;  // positions
    float beta_fast, beta_slow;    // turns between which the mix changes
    float log_multiplier;          // rope.scaling.yarn_log_multiplier; 0: none
};

// Angles divided by `factor` (linear scaling; 1: none), and YaRN's scaling by `factor`, in the float arithmetic that
// llama.cpp prepares its graph with (llama-context.cpp). attention_factor multiplies the magnitude.
RopeShape rope_plain(std::size_t rotated, float base, float attention_factor, float factor);
RopeShape rope_yarn(std::size_t rotated, float base, float attention_factor, float factor, const YarnScaling &yarn);

// table[i * rotated ..]: (cos, sin) pairs of position first + i.
void rope_table(const RopeShape &shape, std::size_t first, std::size_t n, float *table);

// Turns `heads` heads of head_size values at the start of each of n rows (stride ldx), in place. Adjacent pairs, or
// (neox) value i with value i + rotated / 2.
void rope_rotate(Pool &pool, const float *table, std::size_t rotated, bool neox, std::size_t n, std::size_t heads,
                 std::size_t head_size, float *x, std::size_t ldx);

}  // namespace bankml
