#include <cstring>

#include "activations/activation.h"

namespace bankml {
namespace {

std::size_t column_bytes(std::size_t k) { return k * sizeof(float); }
std::size_t buffer_floats(std::size_t k, std::size_t n) { return n * k; }

void convert(std::size_t k, std::size_t, std::size_t i, const float *x, float *buffer) {
    std::memcpy(buffer + i * k, x, k * sizeof(float));
}

}  // namespace

// Rows are whole steps of 32: what the reference does with a rest is its compiler's choice.
constinit const ActivationFormat f32_activations = {"f32", 32, column_bytes, buffer_floats, convert};

}  // namespace bankml
