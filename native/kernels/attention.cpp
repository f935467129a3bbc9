#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.h"

namespace bankml {
namespace {

// llama.cpp cuts the cells among its threads from so many on.
constexpr std::size_t split_from = 512;

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

struct Call {
    Pool &pool;
    const Kernels &kernel;
    const AttentionShape &shape;
    const float *qkv;
    std::size_t ldqkv;
    const SequenceRows &rows;
    const std::uint16_t *k, *v;
    float *out;
    ScoreRule rule = shape.rule();
    VisibleCells visible = rows.visible(shape);

    HeadCache cache_of(std::size_t head) const {
        const std::size_t at = head / (shape.heads / shape.kv_heads) * shape.cells * shape.head_size;
        return {k + at, v + at, shape.head_size};
    }
    std::size_t width() const { return shape.heads * shape.head_size; }
};

void store(const AttentionShape &s, const Kernels &kernel, const float *qkv, std::size_t ldqkv,
           const SequenceRows &rows, std::uint16_t *k, std::uint16_t *v) {
    for (std::size_t i = 0; i < rows.n; ++i) {
        const float *row = qkv + i * ldqkv + s.heads * s.head_size;
        for (std::size_t h = 0; h < s.kv_heads; ++h) {
            const std::size_t at = (h * s.cells + rows.cell(i)) * s.head_size;
            kernel.f32_to_f16(s.head_size, row + h * s.head_size, k + at);
            kernel.f32_to_f16(s.head_size, row + (s.kv_heads + h) * s.head_size, v + at);
        }
    }
}

// One row after the other; the cells in order.
void attend_rows(const Call &c) {
    const std::size_t d = c.shape.head_size;
    c.pool.run(c.rows.n * c.shape.heads, [&](std::size_t task, std::size_t thread) {
        const std::size_t row = task / c.shape.heads, head = task % c.shape.heads;
        float *q = c.pool.scratch(thread, 2 * d);
        float *out = c.out + row * c.width() + head * d;
        OnlineSoftmax state;
        std::fill(out, out + d, 0.0f);
        c.kernel.f16_round_trip(d, c.qkv + row * c.ldqkv + head * d, q);
        c.visible.each_run(c.rows.position + row, 0, c.rows.seen, [&](std::size_t begin, std::size_t end) {
            c.kernel.attend_cells(c.cache_of(head), begin, end, q, c.rule, state, out, q + d);
        });
        const float inverse = state.sum == 0.0f ? 0.0f : 1.0f / state.sum;
        for (std::size_t i = 0; i < d; ++i) {
            out[i] *= inverse;
        }
    });
}

// One row, its cells cut into one chunk a llama thread; the parts are joined in the order of the chunks.
void attend_split(const Call &c) {
    const std::size_t d = c.shape.head_size, chunks = c.shape.llama_threads, stride = d + 2;
    const std::size_t cells_a_chunk = divide_up(c.rows.seen, chunks);
    float *parts = c.pool.shared(Pool::Shared::parts, c.shape.heads * chunks * stride);
    c.pool.run(c.shape.heads * chunks, [&](std::size_t task, std::size_t thread) {
        const std::size_t head = task / chunks, first = task % chunks * cells_a_chunk;
        float *q = c.pool.scratch(thread, 2 * d), *part = parts + task * stride;
        c.kernel.f16_round_trip(d, c.qkv + head * d, q);
        OnlineSoftmax state;
        std::fill(part + 2, part + stride, 0.0f);
        const std::size_t last = std::min(first + cells_a_chunk, c.rows.seen);
        c.visible.each_run(c.rows.position, first, last, [&](std::size_t begin, std::size_t end) {
            c.kernel.attend_cells(c.cache_of(head), begin, end, q, c.rule, state, part + 2, q + d);
        });
        part[0] = state.maximum;
        part[1] = state.sum;
    });
    for (std::size_t head = 0; head < c.shape.heads; ++head) {
        float maximum = -std::numeric_limits<float>::infinity(), sum = 0.0f;
        float *out = c.out + head * d;
        std::fill(out, out + d, 0.0f);
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const float *part = parts + (head * chunks + chunk) * stride;
            if (part[1] == 0.0f) {
                continue;
            }
            const float grown = std::fmax(maximum, part[0]);
            const float old = std::exp(maximum - grown), fresh = std::exp(part[0] - grown);
            for (std::size_t i = 0; i < d; ++i) {
                out[i] = std::fma(out[i], old, part[2 + i] * fresh);
            }
            sum = std::fma(sum, old, part[1] * fresh);
            maximum = grown;
        }
        if (sum != 0.0f) {
            const float inverse = 1.0f / sum;
            for (std::size_t i = 0; i < d; ++i) {
                out[i] *= inverse;
            }
        }
    }
}

struct Tile {
    std::size_t head, row, rows;
};

// The rows of all heads, one head after the other, are cut into llama.cpp's chunks, and those into tiles; which rows
// share a tile decides which of them meet a masked cell with weight zero.
std::vector<Tile> tiles_of(std::size_t heads, std::size_t n, std::size_t llama_threads) {
    const std::size_t all = heads * n;
    const std::size_t fine = divide_up(all, divide_up(all, llama_threads * 4));
    const std::size_t chunks = llama_threads == 1 || fine < llama_threads ? llama_threads : fine;
    const std::size_t rows_a_chunk = divide_up(all, chunks);
    std::vector<Tile> tiles;
    for (std::size_t begin = 0; begin < all; begin += rows_a_chunk) {
        const std::size_t end = std::min(begin + rows_a_chunk, all);
        for (std::size_t at = begin; at < end;) {
            const std::size_t row = at % n;
            const std::size_t rows = std::min({attend_tile_rows, end - at, n - row});
            tiles.push_back({at / n, row, rows});
            at += rows;
        }
    }
    return tiles;
}

void attend_tiles(const Call &c) {
    const std::size_t d = c.shape.head_size;
    const std::vector<Tile> tiles = tiles_of(c.shape.heads, c.rows.n, c.shape.llama_threads);
    c.pool.run(tiles.size(), [&](std::size_t task, std::size_t thread) {
        const Tile &tile = tiles[task];
        c.kernel.attend_tile(c.cache_of(tile.head), c.visible, c.rows.position + tile.row, tile.rows,
                             c.qkv + tile.row * c.ldqkv + tile.head * d, c.ldqkv, c.rule,
                             c.out + tile.row * c.width() + tile.head * d, c.width(),
                             c.pool.scratch(thread, attend_tile_scratch(d)));
    });
}

}  // namespace

void attend(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, const SequenceRows &rows,
            std::uint16_t *k, std::uint16_t *v, float *out) {
    store(shape, kernels(), qkv, ldqkv, rows, k, v);
    const Call call{pool, kernels(), shape, qkv, ldqkv, rows, k, v, out};
    if (rows.n == 1 && rows.seen >= split_from) {
        attend_split(call);
    } else if (rows.n >= attend_tile_rows) {
        attend_tiles(call);
    } else {
        attend_rows(call);
    }
}

}  // namespace bankml
