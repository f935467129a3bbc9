#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.h"

namespace bankml {
namespace {

// llama.cpp sees the cache in steps of this many cells, and cuts the cells among its threads from so many on.
constexpr std::size_t padded_cells = 256, split_from = 512;

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

struct Call {
    Pool &pool;
    const Kernels &kernel;
    const AttentionShape &shape;
    const float *qkv;
    std::size_t ldqkv, n, position;
    const std::uint16_t *k, *v;
    float *out;

    HeadCache cache_of(std::size_t head) const {
        const std::size_t at = head / (shape.heads / shape.kv_heads) * shape.cells * shape.head_size;
        return {k + at, v + at, shape.head_size};
    }
    std::size_t width() const { return shape.heads * shape.head_size; }
};

void store(const AttentionShape &s, const Kernels &kernel, const float *qkv, std::size_t ldqkv, std::size_t n,
           std::size_t position, std::uint16_t *k, std::uint16_t *v) {
    for (std::size_t i = 0; i < n; ++i) {
        const float *row = qkv + i * ldqkv + s.heads * s.head_size;
        for (std::size_t h = 0; h < s.kv_heads; ++h) {
            const std::size_t at = (h * s.cells + position + i) * s.head_size;
            kernel.f32_to_f16(s.head_size, row + h * s.head_size, k + at);
            kernel.f32_to_f16(s.head_size, row + (s.kv_heads + h) * s.head_size, v + at);
        }
    }
}

// One row after the other; the cells in order.
void attend_rows(const Call &c) {
    const std::size_t d = c.shape.head_size;
    c.pool.run(c.n * c.shape.heads, [&](std::size_t task, std::size_t thread) {
        const std::size_t row = task / c.shape.heads, head = task % c.shape.heads;
        float *q = c.pool.scratch(thread, 2 * d);
        float *out = c.out + row * c.width() + head * d;
        float maximum, sum;
        c.kernel.f16_round_trip(d, c.qkv + row * c.ldqkv + head * d, q);
        c.kernel.attend_cells(c.cache_of(head), 0, c.position + row + 1, q, c.shape.scale, &maximum, &sum, out, q + d);
        const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (std::size_t i = 0; i < d; ++i) {
            out[i] *= inverse;
        }
    });
}

// One row, its cells cut into one chunk a llama thread; the parts are joined in the order of the chunks.
void attend_split(const Call &c, std::size_t seen_cells) {
    const std::size_t d = c.shape.head_size, chunks = c.shape.llama_threads, stride = d + 2;
    const std::size_t cells_a_chunk = divide_up(seen_cells, chunks), end = c.position + 1;
    float *parts = c.pool.shared(Pool::Shared::parts, c.shape.heads * chunks * stride);
    c.pool.run(c.shape.heads * chunks, [&](std::size_t task, std::size_t thread) {
        const std::size_t head = task / chunks, begin = std::min(task % chunks * cells_a_chunk, end);
        float *q = c.pool.scratch(thread, 2 * d), *part = parts + task * stride;
        c.kernel.f16_round_trip(d, c.qkv + head * d, q);
        c.kernel.attend_cells(c.cache_of(head), begin, std::min(begin + cells_a_chunk, end), q, c.shape.scale, part,
                              part + 1, part + 2, q + d);
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
    const std::vector<Tile> tiles = tiles_of(c.shape.heads, c.n, c.shape.llama_threads);
    c.pool.run(tiles.size(), [&](std::size_t task, std::size_t thread) {
        const Tile &tile = tiles[task];
        c.kernel.attend_tile(c.cache_of(tile.head), c.position + tile.row, tile.rows,
                             c.qkv + tile.row * c.ldqkv + tile.head * d, c.ldqkv, c.shape.scale,
                             c.out + tile.row * c.width() + tile.head * d, c.width(),
                             c.pool.scratch(thread, attend_tile_scratch(d)));
    });
}

}  // namespace

RopeShape rope_plain(std::size_t rotated, float base, float attention_factor) {
    return {rotated, base, 1.0f, 0.0f, attention_factor, 0.0f, 0.0f};
}

RopeShape rope_yarn(std::size_t rotated, float base, float factor, std::size_t original_context,
                    float attention_factor) {
    const int n = int(rotated);
    const auto turns_at = [&](float turns) {
        return float(n) * std::log(float(int(original_context)) / (turns * 2 * float(M_PI))) / (2 * std::log(base));
    };
    const float scale = 1.0f / factor, grown = 1.0f / scale;
    // The magnitude is taken out here and put back, rounded once more, where the table is made.
    float magnitude = grown <= 1.0f ? 1.0f : 0.1f * 1.0f * std::log(grown) + 1.0f;
    magnitude *= 1.0f / (1.0f + 0.1f * std::log(grown));
    magnitude *= attention_factor;
    return {rotated,
            base,
            scale,
            1.0f,
            magnitude,
            std::max(0.0f, std::floor(turns_at(32.0f))),
            std::min(float(n - 1), std::ceil(turns_at(1.0f)))};
}

void rope_table(const RopeShape &shape, std::size_t first, std::size_t n, float *table) {
    const float step = std::pow(shape.base, -2.0f / float(shape.rotated));
    for (std::size_t i = 0; i < n; ++i, table += shape.rotated) {
        float theta = float(first + i);
        for (std::size_t j = 0; j < shape.rotated; j += 2) {
            float angle = shape.frequency_scale * theta, magnitude = shape.magnitude;
            if (shape.extrapolation != 0.0f) {  // YaRN: a mix by frequency of interpolated and plain angles
                const float y = (float(j / 2) - shape.ramp_low) / std::max(0.001f, shape.ramp_high - shape.ramp_low);
                const float mix = (1.0f - std::min(1.0f, std::max(0.0f, y))) * shape.extrapolation;
                angle = std::fma(angle, 1.0f - mix, theta * mix);
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

void attend(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, std::size_t n,
            std::size_t position, std::uint16_t *k, std::uint16_t *v, float *out) {
    store(shape, kernels(), qkv, ldqkv, n, position, k, v);
    const Call call{pool, kernels(), shape, qkv, ldqkv, n, position, k, v, out};
    const std::size_t seen = std::min(divide_up(position + n, padded_cells) * padded_cells, shape.cells);
    if (n == 1 && seen >= split_from) {
        attend_split(call, seen);
    } else if (n >= attend_tile_rows) {
        attend_tiles(call);
    } else {
        attend_rows(call);
    }
}

}  // namespace bankml
