#include "kernels/gelu.h"

#include <cmath>
#include <vector>

#include "kernels/half.h"

namespace bankml {
namespace {

// ggml_gelu_f32 with gcc's fused multiply-add.
float gelu(float x) {
    const float inner = std::fma(0.044715f * x, x, 1.0f);
    return 0.5f * x * (1.0f + std::tanh(0.79788456080286535587989211986876f * x * inner));
}

std::vector<float> make_table() {
    std::vector<float> table(1 << 16);
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i] = half_to_float(float_to_half(gelu(half_to_float(std::uint16_t(i)))));
    }
    return table;
}

}  // namespace

const float *gelu_table() {
    static const std::vector<float> table = make_table();
    return table.data();
}

}  // namespace bankml
