#include "activations/activation.h"
#include "kernels/bfloat.h"

namespace bankml {
namespace {

std::size_t column_bytes(std::size_t k) { return k * sizeof(float); }
std::size_t buffer_floats(std::size_t k, std::size_t n) { return n * k; }

void convert(std::size_t k, std::size_t, std::size_t i, const float *x, float *buffer) {
    for (std::size_t j = 0; j < k; ++j) {
        buffer[i * k + j] = bfloat_to_float(float_to_bfloat(x[j]));
    }
}

}  // namespace

constinit const ActivationFormat bf16_activations = {"bf16", 1, column_bytes, buffer_floats, convert};

}  // namespace bankml
