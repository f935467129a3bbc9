// The operations beside the products of weights, one table of functions an instruction set (isa/). `portable` is the
// definition: it fixes every lane, every order of addition and every fused multiply-add; other sets compute the same
// bits faster.
//
// The definition follows llama.cpp b11192's CPU backend as gcc compiles it for AVX2, FMA and F16C. Each entry names the
// function of ggml whose bits it has. Arrays are dense, row-major; f16 values are their 16 bits in a uint16_t.
#pragma once
#include <cstddef>
#include <cstdint>

#include "activations/activation.h"
#include "kernels/visible.h"

namespace bankml {

// One attention head's view of an f16 K/V cache: rows of `head_size` values.
struct HeadCache {
    const std::uint16_t *k;
    const std::uint16_t *v;
    std::size_t head_size;
};

// The same in q8_0: rows of head_size / 32 blocks, each an f16 scale and 32 signed bytes.
struct Q8HeadCache {
    const std::uint8_t *k;
    const std::uint8_t *v;
    std::size_t head_size;
};

struct Kernels {
    void (*f32_to_f16)(std::size_t n, const float *x, std::uint16_t *y);  // ggml_cpu_fp32_to_fp16
    void (*f16_to_f32)(std::size_t n, const std::uint16_t *x, float *y);  // ggml_cpu_fp16_to_fp32
    // y = f32(f16(x)): what an activation is before it meets f16 weights.
    void (*f16_round_trip)(std::size_t n, const float *x, float *y);
    // quantize_row_q8_0. n values (n % 32 == 0) in blocks of 32: d = max|x| / 127 as f16, q = x * 127 / max|x| to the
    // nearest even, packed with signed saturation (what is not a finite number becomes -128).
    void (*quantize_q8_0)(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum);
    // quantize_row_q8_1: q and d as q8_0's, s = f16(d * sum of q).
    void (*quantize_q8_1)(std::size_t n, const float *x, std::int8_t *q, float *d, float *s);
    // quantize_row_q8_K_ref. n % 256 == 0: q = x * -127 / m to the nearest even, m the first value of the largest
    // magnitude; d is the reciprocal of that factor.
    void (*quantize_q8_K)(std::size_t n, const float *x, std::int8_t *q, float *d, std::int16_t *sums);

    // ggml_compute_forward_rms_norm_f32 with its weight: y = (x * 1/sqrt(mean(x^2) + eps)) * weight; the squares are
    // summed in double, in order.
    void (*rms_norm)(std::size_t n, const float *x, const float *weight, float eps, float *y);
    // ggml_compute_forward_norm_f32, then its weight and its bias: y = ((x - mean) * 1/sqrt(variance + eps)) * weight +
    // bias. The mean is summed in double, in order; the squares by sum_lanes, eight at a time, then in double. y may be
    // x.
    void (*layer_norm)(std::size_t n, const float *x, const float *weight, const float *bias, float eps, float *y);
    // ggml_vec_swiglu_f32: y = silu(gate) * up, with the polynomial of ggml_v_expf.
    void (*swiglu)(std::size_t n, const float *gate, const float *up, float *y);
    // ggml_vec_geglu_f32: y = gelu(gate) * up, gelu from a table of every f16 (gelu.h).
    void (*geglu)(std::size_t n, const float *gate, const float *up, float *y);
    // ggml_vec_gelu_f32: x = gelu(x), from the same table.
    void (*gelu)(std::size_t n, float *x);
    // ggml_vec_add_f32: x += y
    void (*add)(std::size_t n, float *x, const float *y);
    // ggml_compute_forward_rope_flt for one row; see rope_rotate (attention.h).
    void (*rotate)(const float *table, std::size_t rotated, bool neox, std::size_t heads, std::size_t head_size,
                   float *x);

    // ggml_compute_forward_flash_attn_ext_f16_one_chunk, f16 K and V: softmax-weighted sum of V over cells [begin, end)
    // for one query row: online softmax, V accumulated in f16. q has passed f16_round_trip. Continues from `state` and
    // the accumulator, widened in out[head_size], and leaves both there.
    void (*attend_cells)(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q,
                         const ScoreRule &rule, OnlineSoftmax &state, float *out, float *scratch);
    // ggml_compute_forward_flash_attn_ext_tiled. `rows` <= 64 consecutive query rows (stride ldq) of one head, row i
    // at position first + i; out has stride ldo. `scratch` holds attend_tile_scratch(head_size) floats.
    void (*attend_tile)(const HeadCache &cache, const VisibleCells &visible, std::size_t first, std::size_t rows,
                        const float *q, std::size_t ldq, const ScoreRule &rule, float *out, std::size_t ldo,
                        float *scratch);

    // ggml_compute_forward_fwht. x = H x / sqrt(n) in place, H the Hadamard matrix of n values (a power of two from 8
    // on): scaled first, then sums and differences of neighbours, of pairs, of fours, and so on.
    void (*hadamard)(std::size_t n, float *x);
    // attend_cells over a q8_0 cache, with q in q8_0 and V accumulated in f32 (one_chunk with q8_0 K and V). Products
    // of bytes are |k| times q signed as k (of which -128 stays -128), in eight lanes of four neighbours.
    void (*attend_cells_q8)(const Q8HeadCache &cache, std::size_t begin, std::size_t end, const Q8Column &q,
                            const ScoreRule &rule, OnlineSoftmax &state, float *out);
};

inline constexpr std::size_t attend_tile_rows = 64;   // queries a tile
inline constexpr std::size_t attend_tile_cells = 64;  // K/V cells a tile
constexpr std::size_t attend_tile_scratch(std::size_t head_size) {
    return attend_tile_rows * attend_tile_cells + attend_tile_rows * head_size + 2 * attend_tile_cells * head_size;
}

// The table in use: that of the best set this processor runs unless use_instruction_set chose another.
const Kernels &kernels();

}  // namespace bankml
