// What several threads share in the arithmetic, for ThreadSanitizer: the pool, products of mixed types and attention,
// the results compared with those of one thread.
#include <cstdio>
#include <cstring>
#include <vector>

#include "formats/f16/f16.h"
#include "formats/q4_0/q4_0.h"
#include "formats/q4_K/q4_K.h"
#include "kernels/attention.h"
#include "kernels/pool.h"
#include "kernels/project.h"

using namespace bankml;

// In place of formats/table.cpp: three types, of three activation formats.
namespace {
constinit const WeightFormat *const formats[] = {&f16_format, &q4_0_format, &q4_K_format};
}  // namespace
std::span<const WeightFormat *const> bankml::weight_formats() { return formats; }

namespace {

constexpr std::size_t k = 256, rows = 96, heads = 4, kv_heads = 2, head_size = 64, cells = 1024;

// Bytes that are the same in every run; the scales among them are small.
std::vector<std::uint8_t> random_bytes(std::size_t n) {
    std::vector<std::uint8_t> bytes(n);
    std::uint32_t state = 1;
    for (auto &byte : bytes) {
        state = state * 1664525u + 1013904223u;
        byte = std::uint8_t(state >> 24) & 0x1f;
    }
    return bytes;
}

std::vector<float> random_floats(std::size_t n) {
    std::vector<float> values(n);
    std::uint32_t state = 7;
    for (auto &value : values) {
        state = state * 1664525u + 1013904223u;
        value = float(state >> 16) / 65536.0f - 0.5f;
    }
    return values;
}

// The products of all types in one projection over n rows, several calls behind each other, so that runs follow
// closely.
std::vector<float> products(Pool &pool, std::size_t n) {
    std::vector<std::vector<std::uint8_t>> weights;
    std::vector<Matrix> matrices;
    for (const WeightFormat *format : weight_formats()) {
        weights.push_back(random_bytes(rows * format->row_bytes(k)));
        matrices.push_back({format, weights.back().data(), rows, k});
    }
    const std::vector<float> x = random_floats(n * k);
    const std::size_t width = rows * matrices.size();
    std::vector<float> y(n * width);
    for (int round = 0; round < 3; ++round) {
        project(pool, matrices, x.data(), n, n, y.data(), width);
    }
    return y;
}

std::vector<float> attention(Pool &pool, std::size_t n, std::size_t position) {
    const AttentionShape shape{heads, kv_heads, head_size, 0.125f, cells, 3};
    const std::size_t width = (heads + 2 * kv_heads) * head_size;
    const std::vector<float> qkv = random_floats(n * width);
    std::vector<std::uint16_t> k16(kv_heads * cells * head_size), v16(k16.size());
    std::vector<std::uint8_t> k8(kv_heads * cells * head_size / 32 * 34), v8(k8.size());
    std::vector<float> out(2 * n * heads * head_size);
    const SequenceRows rows = rows_in_order(n, position, cells);
    attend(pool, shape, qkv.data(), width, rows, k16.data(), v16.data(), out.data());
    attend_q8(pool, shape, qkv.data(), width, rows, k8.data(), v8.data(), out.data() + out.size() / 2);
    return out;
}

bool same(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

int main() {
    Pool one(1), several(4);
    for (const std::size_t n : {std::size_t{1}, std::size_t{3}, std::size_t{70}}) {
        if (!same(products(one, n), products(several, n))) {
            std::printf("the products of %zu rows depend on the threads\n", n);
            return 1;
        }
        for (const std::size_t position : {std::size_t{0}, std::size_t{600}}) {
            if (!same(attention(one, n, position), attention(several, n, position))) {
                std::printf("the attention of %zu rows depends on the threads\n", n);
                return 1;
            }
        }
    }
    std::size_t sum = 0;
    std::vector<std::size_t> each(1000);
    for (int round = 0; round < 200; ++round) {  // short runs, one closely behind the other
        several.run(each.size() / (round % 7 + 1), [&](std::size_t i, std::size_t) { each[i] += 1; });
    }
    for (const std::size_t count : each) {
        sum += count;
    }
    std::printf("%zu\n", sum);
    return 0;
}
