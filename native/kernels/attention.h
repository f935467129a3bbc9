// Causal attention over one layer's K/V cache.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"
#include "kernels/visible.h"

namespace bankml {

struct AttentionShape {
    std::size_t heads, kv_heads, head_size;
    float scale;
    std::size_t cells;          // the cache's cells a head: its stride
    std::size_t llama_threads;  // how many chunks llama.cpp would cut the cells into when one row meets >= 512 of them
    float softcap = 0.0f;       // of the scores; 0: none
    std::size_t window = 0;     // positions that a row sees, its own among them; 0: all

    ScoreRule rule() const { return {scale, softcap}; }
};

// Where the rows of one micro-batch stand in a sequence and in its K/V cache.
struct SequenceRows {
    std::size_t n, position;        // rows, and the position of the first
    const std::int32_t *places;     // the cell of each row; nullptr: its position
    const std::int32_t *positions;  // what each of the `seen` cells has once the rows are stored; nullptr: its number
    std::size_t seen;               // cells that llama.cpp's kernels would go through

    std::size_t cell(std::size_t row) const { return places == nullptr ? position + row : std::size_t(places[row]); }
    VisibleCells visible(const AttentionShape &shape) const { return {positions, seen, shape.window}; }
};

// llama.cpp sees a cache in steps of this many cells.
inline constexpr std::size_t padded_cells = 256;

// Rows whose cells are their positions, in a cache of `cells` cells.
inline SequenceRows rows_in_order(std::size_t n, std::size_t position, std::size_t cells) {
    const std::size_t padded = (position + n + padded_cells - 1) / padded_cells * padded_cells;
    return {n, position, nullptr, nullptr, padded < cells ? padded : cells};
}

// Rows of `qkv` (stride ldqkv) hold Q's heads, then K's, then V's. K and V are rounded to f16 and stored in the rows'
// cells of the caches k, v: [kv_heads][cells][head_size]; then every row attends to the cells that it sees. out:
// [n][heads * head_size].
void attend(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, const SequenceRows &rows,
            std::uint16_t *k, std::uint16_t *v, float *out);

inline constexpr std::size_t max_q8_head = 256;  // values of a head that attend_q8 takes

// The same over a cache in q8_0, rows of head_size / 32 blocks: [kv_heads][cells][head_size / 32 * 34 bytes]. Heads of
// whole 64s are turned by Hadamard matrices before they are quantized, and so is what comes out. Always row by row,
// whatever n is.
void attend_q8(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, const SequenceRows &rows,
               std::uint8_t *k, std::uint8_t *v, float *out);

}  // namespace bankml
