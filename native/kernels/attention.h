// Rotary positions and causal attention over one layer's K/V cache.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"

namespace bankml {

struct RopeShape {
    std::size_t rotated;    // values of a head that turn, even
    float base;             // frequency base
    float frequency_scale;  // 1 / factor under linear interpolation
    float extrapolation;    // 0: none, 1: YaRN's mix
    float magnitude;        // attention factor
    float ramp_low, ramp_high;
};

// No scaling, and YaRN by `factor` from `original_context` positions (ramp between 32 and 1 turns), in the float
// arithmetic that llama.cpp prepares its graph with. attention_factor multiplies the magnitude.
RopeShape rope_plain(std::size_t rotated, float base, float attention_factor);
RopeShape rope_yarn(std::size_t rotated, float base, float factor, std::size_t original_context,
                    float attention_factor);

// table[i * rotated ..]: (cos, sin) pairs of position first + i.
void rope_table(const RopeShape &shape, std::size_t first, std::size_t n, float *table);

// Turns `heads` heads of head_size values at the start of each of n rows (stride ldx), in place. Adjacent pairs, or
// (neox) value i with value i + rotated / 2.
void rope_rotate(Pool &pool, const float *table, std::size_t rotated, bool neox, std::size_t n, std::size_t heads,
                 std::size_t head_size, float *x, std::size_t ldx);

struct AttentionShape {
    std::size_t heads, kv_heads, head_size;
    float scale;
    std::size_t cells;          // the cache's cells a head: its stride
    std::size_t llama_threads;  // how many chunks llama.cpp would cut the cells into when one row meets >= 512 of them
};

// Rows of `qkv` (stride ldqkv) hold Q's heads, then K's, then V's. K and V are rounded to f16 and stored in cells
// [position, position + n) of the caches k, v: [kv_heads][cells][head_size]; then every row attends to the cells up to
// its own. out: [n][heads * head_size].
void attend(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, std::size_t n,
            std::size_t position, std::uint16_t *k, std::uint16_t *v, float *out);

inline constexpr std::size_t max_q8_head = 256;  // values of a head that attend_q8 takes

// The same over a cache in q8_0, rows of head_size / 32 blocks: [kv_heads][cells][head_size / 32 * 34 bytes]. Heads of
// whole 64s are turned by Hadamard matrices before they are quantized, and so is what comes out. Always row by row,
// whatever n is.
void attend_q8(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, std::size_t n,
               std::size_t position, std::uint8_t *k, std::uint8_t *v, float *out);

}  // namespace bankml
