// The arithmetic, one table of functions an instruction set. `portable` is the definition: it fixes every lane, every
// order of addition and every fused multiply-add; the other tables compute the same bits faster.
//
// The definition follows llama.cpp b11192's CPU backend as gcc compiles it for AVX2, FMA and F16C. Arrays are dense,
// row-major; f16 values are their 16 bits in a uint16_t.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bankml {

// One column of activations quantized to q8_0: k values in blocks of 32, each block's scale widened from its f16, and the
// sum of each block's values.
struct Q8Column {
    const std::int8_t *q;
    const float *d;
    const std::int32_t *sum;
};

// One attention head's view of the K/V cache: `cells` rows of `head_size` values each.
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
    const char *name;

    void (*round_f16)(std::size_t n, const float *x, std::uint16_t *y);
    void (*widen_f16)(std::size_t n, const std::uint16_t *x, float *y);
    // y = f32(f16(x)): what an activation is before it meets f16 weights.
    void (*through_f16)(std::size_t n, const float *x, float *y);

    // One column, or shapes the blocked product does not take: y[r] = w[r] . x, four accumulators of eight lanes.
    // x has passed through_f16. Rows w[0..rows), k values each.
    void (*f16_dot_rows)(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, float *y);
    // Two or more columns, rows % 4 == 0, k % 8 == 0: y[c * ldy + r] = w[r] . x[c], one accumulator of eight lanes.
    // `scratch` holds rows * k floats; rows <= f16_block_rows.
    void (*f16_block)(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t columns,
                      float *y, std::size_t ldy, float *scratch);

    // n values (n % 32 == 0) in blocks of 32: d = max|x| / 127 as f16, q = x * 127 / max|x| to the nearest even, packed
    // with signed saturation (what is not a finite number becomes -128).
    void (*quantize_q8)(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum);
    // y[c * ldy + r] = w[r] . column[c]. Q1_0: eight lanes, each the sum of four neighbours of a block of 32, negated as i8
    // where the bit is 0 (so -128 stays -128); the four blocks' products are chained, then scaled, then summed as lanes.
    void (*q1_0_rows)(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                      float *y, std::size_t ldy);
    // The same product where many columns share the work of preparing many rows: `scratch` holds
    // q1_0_block_scratch(rows, k) floats.
    void (*q1_0_block)(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                       float *y, std::size_t ldy, float *scratch);
    std::size_t (*q1_0_block_scratch)(std::size_t rows, std::size_t k);
    // Q2_0: one chain of multiply-adds a row, two whole block sums a step.
    void (*q2_0_rows)(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                      float *y, std::size_t ldy);

    // y = (x * 1/sqrt(mean(x^2) + eps)) * weight; the squares are summed in double, in order.
    void (*rms_norm)(std::size_t n, const float *x, const float *weight, float eps, float *y);
    // y = silu(gate) * up, with the reference's own polynomial for exp.
    void (*swiglu)(std::size_t n, const float *gate, const float *up, float *y);
    // x += y
    void (*add)(std::size_t n, float *x, const float *y);
    // One row of rope_rotate (attention.h).
    void (*rotate)(const float *table, std::size_t rotated, bool neox, std::size_t heads, std::size_t head_size, float *x);

    // Softmax-weighted sum of V over cells [begin, end) for one query row: online softmax, V accumulated in f16.
    // q has passed through_f16. Leaves the maximum, the sum, and the accumulator widened in out[head_size].
    void (*attend_cells)(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, float scale,
                         float *maximum, float *sum, float *out, float *scratch);
    // `rows` <= 64 consecutive query rows (stride ldq) of one head, row i seeing cells [0, first + i]; out has stride ldo.
    // `scratch` holds attend_tile_scratch(head_size) floats.
    void (*attend_tile)(const HeadCache &cache, std::size_t first, std::size_t rows, const float *q, std::size_t ldq,
                        float scale, float *out, std::size_t ldo, float *scratch);

    // x = H x / sqrt(n) in place, H the Hadamard matrix of n values (a power of two from 8 on): scaled first, then sums and
    // differences of neighbours, of pairs, of fours, and so on.
    void (*hadamard)(std::size_t n, float *x);
    // attend_cells over the cells [0, end) of a q8_0 cache, with q in q8_0 and V accumulated in f32. Products of bytes are
    // |k| times q signed as k (of which -128 stays -128), in eight lanes of four neighbours.
    void (*attend_cells_q8)(const Q8HeadCache &cache, std::size_t end, const Q8Column &q, float scale, float *sum,
                            float *out);
};

inline constexpr std::size_t f16_block_rows = 32;
inline constexpr std::size_t attend_tile_rows = 64;   // queries a tile
inline constexpr std::size_t attend_tile_cells = 64;  // K/V cells a tile
constexpr std::size_t attend_tile_scratch(std::size_t head_size) {
    return attend_tile_rows * attend_tile_cells + attend_tile_rows * head_size + 2 * attend_tile_cells * head_size;
}

extern const Kernels portable_kernels;
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;

// The table in use: the best this processor runs unless `use_kernels` chose another. nullptr: no such table here.
const Kernels &kernels();
const Kernels *find_kernels(const char *name);
bool use_kernels(const char *name);

}  // namespace bankml
