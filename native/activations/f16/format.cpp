#include "activations/activation.h"
#include "kernels/kernels.h"

namespace bankml {
namespace {

std::size_t column_bytes(std::size_t k) { return k * sizeof(float); }
std::size_t buffer_floats(std::size_t k, std::size_t n) { return n * k; }

void convert(std::size_t k, std::size_t, std::size_t i, const float *x, float *buffer) {
    kernels().f16_round_trip(k, x, buffer + i * k);
}

}  // namespace

constinit const ActivationFormat f16_activations = {"f16", 1, column_bytes, buffer_floats, convert};

}  // namespace bankml
