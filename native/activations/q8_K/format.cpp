#include "activations/activation.h"
#include "kernels/kernels.h"

namespace bankml {
namespace {

std::size_t column_bytes(std::size_t) { return sizeof(Q8KColumn); }

// The columns, then all scales, all sums, all values.
std::size_t buffer_floats(std::size_t k, std::size_t n) {
    const std::size_t blocks = k / q8_K_values;
    return n * (sizeof(Q8KColumn) / sizeof(float) + blocks * (1 + q8_K_sums / 2) + k / sizeof(float));
}

void convert(std::size_t k, std::size_t n, std::size_t i, const float *x, float *buffer) {
    const std::size_t blocks = k / q8_K_values;
    Q8KColumn *columns = reinterpret_cast<Q8KColumn *>(buffer);
    float *d = reinterpret_cast<float *>(columns + n);
    std::int16_t *sums = reinterpret_cast<std::int16_t *>(d + n * blocks);
    std::int8_t *q = reinterpret_cast<std::int8_t *>(sums + n * blocks * q8_K_sums);
    columns[i] = {q + i * k, d + i * blocks, sums + i * blocks * q8_K_sums};
    kernels().quantize_q8_K(k, x, q + i * k, d + i * blocks, sums + i * blocks * q8_K_sums);
}

}  // namespace

constinit const ActivationFormat q8_K_activations = {"q8_K", q8_K_values, column_bytes, buffer_floats, convert};

}  // namespace bankml
