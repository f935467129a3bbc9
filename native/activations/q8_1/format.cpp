#include "activations/activation.h"
#include "kernels/kernels.h"

namespace bankml {
namespace {

std::size_t column_bytes(std::size_t) { return sizeof(Q8_1Column); }

// The columns, then all scales, all s, all values.
std::size_t buffer_floats(std::size_t k, std::size_t n) {
    return n * (sizeof(Q8_1Column) / sizeof(float) + 2 * (k / q8_0_values) + k / sizeof(float));
}

void convert(std::size_t k, std::size_t n, std::size_t i, const float *x, float *buffer) {
    const std::size_t blocks = k / q8_0_values;
    Q8_1Column *columns = reinterpret_cast<Q8_1Column *>(buffer);
    float *d = reinterpret_cast<float *>(columns + n), *s = d + n * blocks;
    std::int8_t *q = reinterpret_cast<std::int8_t *>(s + n * blocks);
    columns[i] = {q + i * k, d + i * blocks, s + i * blocks};
    kernels().quantize_q8_1(k, x, q + i * k, d + i * blocks, s + i * blocks);
}

}  // namespace

constinit const ActivationFormat q8_1_activations = {"q8_1", q8_0_values, column_bytes, buffer_floats, convert};

}  // namespace bankml
