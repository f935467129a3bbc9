#include <algorithm>
#include <cstring>

#include "kernels/attention.h"
#include "kernels/cache_q8.h"

namespace bankml {
namespace {

// How many values turn together; 0: none do. llama.cpp turns heads of whole 64s only: Q and K over the largest power of
// two that divides the head, V and what comes out over 64.
struct Rotations {
    std::size_t qk, v;
};

Rotations rotations_of(std::size_t head_size) {
    if (head_size % 64 != 0) {
        return {0, 0};
    }
    return {head_size & (~head_size + 1), 64};
}

void rotate(const Kernels &kernel, std::size_t n, std::size_t together, float *x) {
    for (std::size_t i = 0; together != 0 && i < n; i += together) {
        kernel.hadamard(together, x + i);
    }
}

// One head of one row, turned and quantized.
struct QuantizedHead {
    float turned[max_q8_head];
    std::int8_t q[max_q8_head];
    float d[max_q8_head / q8_0_values];
    std::int32_t sum[max_q8_head / q8_0_values];

    QuantizedHead(const Kernels &kernel, std::size_t n, const float *x, std::size_t together) {
        std::memcpy(turned, x, n * sizeof(float));
        rotate(kernel, n, together, turned);
        kernel.quantize_q8_0(n, turned, q, d, sum);
    }

    void store(const Kernels &kernel, std::size_t n, std::uint8_t *row) const {
        for (std::size_t b = 0; b < n / q8_0_values; ++b, row += q8_0_block_bytes) {
            std::uint16_t scale;
            kernel.f32_to_f16(1, d + b, &scale);
            std::memcpy(row, &scale, sizeof scale);
            std::memcpy(row + sizeof scale, q + b * q8_0_values, q8_0_values);
        }
    }
};

}  // namespace

void attend_q8(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, const SequenceRows &rows,
               std::uint8_t *k, std::uint8_t *v, float *out) {
    const Kernels &kernel = kernels();
    const std::size_t size = shape.head_size, row_bytes = q8_0_row_bytes(size);
    const Rotations turn = rotations_of(size);
    const ScoreRule rule = shape.rule();
    const VisibleCells visible = rows.visible(shape);
    pool.run(rows.n, [&](std::size_t i, std::size_t) {
        const float *row = qkv + i * ldqkv + shape.heads * size;
        for (std::size_t h = 0; h < shape.kv_heads; ++h) {
            const std::size_t at = (h * shape.cells + rows.cell(i)) * row_bytes;
            QuantizedHead(kernel, size, row + h * size, turn.qk).store(kernel, size, k + at);
            QuantizedHead(kernel, size, row + (shape.kv_heads + h) * size, turn.v).store(kernel, size, v + at);
        }
    });
    pool.run(rows.n * shape.heads, [&](std::size_t task, std::size_t) {
        const std::size_t i = task / shape.heads, head = task % shape.heads;
        const std::size_t at = head / (shape.heads / shape.kv_heads) * shape.cells * row_bytes;
        const QuantizedHead q(kernel, size, qkv + i * ldqkv + head * size, turn.qk);
        float *to = out + (i * shape.heads + head) * size;
        OnlineSoftmax state;
        std::fill(to, to + size, 0.0f);
        visible.each_run(rows.position + i, 0, rows.seen, [&](std::size_t begin, std::size_t end) {
            kernel.attend_cells_q8({k + at, v + at, size}, begin, end, {q.q, q.d, q.sum}, rule, state, to);
        });
        const float inverse = state.sum == 0.0f ? 0.0f : 1.0f / state.sum;
        for (std::size_t j = 0; j < size; ++j) {
            to[j] *= inverse;
        }
        rotate(kernel, size, turn.v, to);
    });
}

}  // namespace bankml
