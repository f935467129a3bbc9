#include "formats/bf16/bf16.h"
#include "formats/floats.h"
#include "kernels/bfloat.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = 2;
    static float value(const std::uint8_t *p) { return bfloat_to_float(block_scale(p)); }
};

// ggml_vec_dot_bf16: eight lanes as everywhere; what is left of k is multiplied in float and added in double.
float dot(const std::uint8_t *w, std::size_t k, const float *x) {
    const std::size_t whole = k & ~std::size_t{31};
    float lane[8];
    portable::dot_lanes<Codec>(w, whole, x, lane);
    double sum = double(sum_lanes(lane));
    for (std::size_t i = whole; i < k; ++i) {
        sum += double(Codec::value(w + i * Codec::bytes) * x[i]);
    }
    return float(sum);
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

constinit const WeightFormat bf16_format = {
    .id = 30,
    .name = "BF16",
    .block_weights = 1,
    .block_bytes = Codec::bytes,
    .activation = &bf16_activations,
    .widen = widen_elements<Codec>,
    .choose = dot_or_gemm,
    .products = {{.rows = product_of<float, rows_product>}, {.rows = product_of<float, portable::gemm_rows<Codec>>}},
};

}  // namespace bankml
