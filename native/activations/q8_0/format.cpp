#include <cstring>

#include "activations/activation.h"
#include "kernels/kernels.h"

namespace bankml {
namespace {

std::size_t column_bytes(std::size_t) { return sizeof(Q8Column); }

// The columns, then all scales, all sums, all values.
std::size_t buffer_floats(std::size_t k, std::size_t n) {
    return n * (sizeof(Q8Column) / sizeof(float) + 2 * (k / q8_0_values) + k / sizeof(float));
}

void convert(std::size_t k, std::size_t n, std::size_t i, const float *x, float *buffer) {
    const std::size_t blocks = k / q8_0_values;
    Q8Column *columns = reinterpret_cast<Q8Column *>(buffer);
    float *d = reinterpret_cast<float *>(columns + n);
    std::int32_t *sum = reinterpret_cast<std::int32_t *>(d + n * blocks);
    std::int8_t *q = reinterpret_cast<std::int8_t *>(sum + n * blocks);
    kernels().quantize_q8_0(k, x, q + i * k, d + i * blocks, sum + i * blocks);
    columns[i] = {q + i * k, d + i * blocks, sum + i * blocks, std::memchr(q + i * k, 0x80, k) == nullptr};
}

}  // namespace

constinit const ActivationFormat q8_0_activations = {"q8_0", q8_0_values, column_bytes, buffer_floats, convert};

}  // namespace bankml
