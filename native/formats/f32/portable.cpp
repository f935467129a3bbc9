#include "formats/f32/f32.h"
#include "formats/floats.h"
#include "kernels/bfloat.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 4;
    static float value(const std::uint8_t *p) {
        float value;
        std::memcpy(&value, p, sizeof value);
        return value;
    }
};

// ggml_vec_dot_f32: the halves of the eight lanes, then neighbours twice. k % 32 == 0.
float dot(const std::uint8_t *w, std::size_t k, const float *x) {
    float lane[8];
    portable::dot_lanes<Codec>(w, k, x, lane);
    return sum_neighbour_lanes(lane);
}

void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t n, float *y,
                  std::size_t ldy) {
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] = dot(w + r * k * Codec::bytes, k, x + c * k);
        }
    }
}

}  // namespace

constinit const WeightFormat f32_format = {
    .id = 0,
    .name = "F32",
    .block_weights = 1,
    .block_bytes = Codec::bytes,
    .activation = &f32_activations,
    .widen = widen_elements<Codec>,
    .choose = dot_or_gemm,
    .products = {{.rows = product_of<float, rows_product>}, {.rows = product_of<float, portable::gemm_rows<Codec>>}},
};

}  // namespace bankml
