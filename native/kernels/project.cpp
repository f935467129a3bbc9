#include "kernels/project.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/kernels.h"
#include "kernels/quantized.h"

namespace bankml {
namespace {

// Rows [begin, end) of matrix `index`, whose outputs start at `offset`.
struct Piece {
    std::size_t index, begin, end, offset;
};

// Whole matrices cut into pieces of about `rows` rows.
std::vector<Piece> cut(const std::vector<Matrix> &matrices, std::size_t rows) {
    std::vector<Piece> pieces;
    std::size_t offset = 0;
    for (std::size_t m = 0; m < matrices.size(); ++m) {
        for (std::size_t r = 0; r < matrices[m].rows; r += rows) {
            pieces.push_back({m, r, std::min(r + rows, matrices[m].rows), offset + r});
        }
        offset += matrices[m].rows;
    }
    return pieces;
}

// One column reads every weight once: pieces large enough to stream, small enough that the threads end together.
std::size_t rows_a_piece(const std::vector<Matrix> &matrices, std::size_t row_bytes, std::size_t threads) {
    constexpr std::size_t least_bytes = 32768;
    std::size_t total = 0;
    for (const Matrix &m : matrices) {
        total += m.rows;
    }
    const std::size_t rows = std::max(least_bytes / row_bytes, total / (threads * 16));
    return std::max<std::size_t>(8, rows / 8 * 8);
}

bool takes_block(const Matrix &m, std::size_t n) { return n >= 2 && m.rows % 4 == 0 && m.columns % 8 == 0; }

void project_f16(Pool &pool, const std::vector<Matrix> &matrices, const float *x, std::size_t n, float *y, std::size_t ldy) {
    const Kernels &kernel = kernels();
    const std::size_t k = matrices[0].columns;
    float *rounded = pool.shared(Pool::Shared::activations, n * k);
    if (n == 1) {
        kernel.through_f16(k, x, rounded);
    } else {
        pool.run(n, [&](std::size_t i, std::size_t) { kernel.through_f16(k, x + i * k, rounded + i * k); });
    }
    const std::vector<Piece> pieces =
        cut(matrices, n == 1 ? rows_a_piece(matrices, k * 2, pool.threads()) : f16_block_rows);
    pool.run(pieces.size(), [&](std::size_t p, std::size_t thread) {
        const Piece &piece = pieces[p];
        const Matrix &m = matrices[piece.index];
        const std::size_t rows = piece.end - piece.begin;
        const std::uint16_t *w = static_cast<const std::uint16_t *>(m.data) + piece.begin * k;
        if (takes_block(m, n)) {
            kernel.f16_block(w, rows, k, rounded, n, y + piece.offset, ldy, pool.scratch(thread, f16_block_rows * k));
            return;
        }
        for (std::size_t i = 0; i < n; ++i) {
            kernel.f16_dot_rows(w, rows, k, rounded + i * k, y + i * ldy + piece.offset);
        }
    });
}

// A block of rows is prepared once for a slab of columns; both are as large as caches and the number of threads allow.
constexpr std::size_t block_columns_least = 8, slab_columns = 64, block_bytes = 360000;

void project_q1_0_blocks(Pool &pool, const std::vector<Matrix> &matrices, const std::vector<Q8Column> &columns, float *y,
                         std::size_t ldy) {
    const Kernels &kernel = kernels();
    const std::size_t k = matrices[0].columns, row_bytes = weight_bytes(WeightType::q1_0, k), n = columns.size();
    const std::size_t rows = std::max<std::size_t>(block_bytes / row_bytes / 32 * 32, 32);
    const std::vector<Piece> pieces = cut(matrices, rows);
    const std::size_t slabs = (n + slab_columns - 1) / slab_columns;
    pool.run(pieces.size() * slabs, [&](std::size_t task, std::size_t thread) {
        const Piece &piece = pieces[task / slabs];
        const std::size_t first = task % slabs * slab_columns;
        const std::uint8_t *w = static_cast<const std::uint8_t *>(matrices[piece.index].data) + piece.begin * row_bytes;
        kernel.q1_0_block(w, piece.end - piece.begin, k, columns.data() + first, std::min(slab_columns, n - first),
                          y + first * ldy + piece.offset, ldy,
                          pool.scratch(thread, kernel.q1_0_block_scratch(piece.end - piece.begin, k)));
    });
}

// The activations are quantized once for all matrices. Pieces are whole groups of 32 rows, so that every instruction set
// finds its rows side by side.
void project_quantized(Pool &pool, const std::vector<Matrix> &matrices, const float *x, std::size_t n, float *y,
                       std::size_t ldy) {
    const Kernels &kernel = kernels();
    const std::size_t k = matrices[0].columns, blocks = k / q8_0_values;
    // One buffer: scales, sums, then the values themselves.
    float *d = pool.shared(Pool::Shared::activations, n * (2 * blocks + k / 4));
    std::int32_t *sum = reinterpret_cast<std::int32_t *>(d + n * blocks);
    std::int8_t *q = reinterpret_cast<std::int8_t *>(sum + n * blocks);
    std::vector<Q8Column> columns(n);
    const auto quantize = [&](std::size_t i, std::size_t) {
        columns[i] = {q + i * k, d + i * blocks, sum + i * blocks};
        kernel.quantize_q8(k, x + i * k, q + i * k, d + i * blocks, sum + i * blocks);
    };
    pool.run(n, quantize);
    if (matrices[0].type == WeightType::q1_0 && n >= block_columns_least) {
        project_q1_0_blocks(pool, matrices, columns, y, ldy);
        return;
    }
    const std::size_t row_bytes = weight_bytes(matrices[0].type, k);
    const std::size_t rows = n == 1 ? rows_a_piece(matrices, row_bytes, pool.threads()) / 32 * 32 : 32;
    const std::vector<Piece> pieces = cut(matrices, std::max<std::size_t>(rows, 32));
    pool.run(pieces.size(), [&](std::size_t p, std::size_t) {
        const Piece &piece = pieces[p];
        const Matrix &m = matrices[piece.index];
        const std::uint8_t *w = static_cast<const std::uint8_t *>(m.data) + piece.begin * row_bytes;
        const auto product = m.type == WeightType::q1_0 ? kernel.q1_0_rows : kernel.q2_0_rows;
        product(w, piece.end - piece.begin, k, columns.data(), n, y + piece.offset, ldy);
    });
}

// Blocks of 128 bits or of 64 two-bit codes: 0 and 1 are -scale and +scale, or code - 1 times scale.
void widen_blocks(const std::uint8_t *block, std::size_t columns, std::size_t weights, float *y) {
    const std::size_t bits = 128 / weights;
    for (std::size_t i = 0; i < columns; ++i) {
        const std::uint8_t *b = block + i / weights * quantized_block_bytes;
        const std::size_t at = i % weights * bits;
        const float scale = half_to_float(block_scale(b));
        const int code = b[2 + at / 8] >> (at % 8) & ((1 << bits) - 1);
        y[i] = bits == 1 ? (code ? scale : -scale) : float(code - 1) * scale;
    }
}

}  // namespace

std::size_t weight_bytes(WeightType type, std::size_t columns) {
    switch (type) {
        case WeightType::f16: return columns * 2;
        case WeightType::q1_0: return columns / 128 * 18;
        case WeightType::q2_0: return columns / 64 * 18;
    }
    throw std::invalid_argument("no such weight type");
}

void widen_row(WeightType type, const void *row, std::size_t columns, float *y) {
    switch (type) {
        case WeightType::f16: return kernels().widen_f16(columns, static_cast<const std::uint16_t *>(row), y);
        case WeightType::q1_0: return widen_blocks(static_cast<const std::uint8_t *>(row), columns, q1_0_weights, y);
        case WeightType::q2_0: return widen_blocks(static_cast<const std::uint8_t *>(row), columns, q2_0_weights, y);
    }
}

void project(Pool &pool, const std::vector<Matrix> &matrices, const float *x, std::size_t n, float *y, std::size_t ldy) {
    if (matrices[0].type == WeightType::f16) {
        project_f16(pool, matrices, x, n, y, ldy);
    } else {
        project_quantized(pool, matrices, x, n, y, ldy);
    }
}

}  // namespace bankml
