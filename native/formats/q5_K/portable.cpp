#include "formats/k_minima.h"
#include "formats/q5_K/q5_K.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = q5_K_bytes;
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        for (std::size_t i = 0; i < super_block; ++i) {
            const std::size_t part = i / 32, at = i % 32;
            const int low = block[48 + part / 2 * 32 + at] >> (part % 2 * 4) & 15;
            value[i] = std::int8_t(low | (block[16 + at] >> part & 1) << 4);
        }
    }
};

// The minima of a block in one sum, and over the blocks in one chain.
void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * q5_K_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {}, minima = 0.0f;
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const MinimaBlock<Codec> block(w + b * q5_K_bytes);
                std::int32_t sum[8], below[4];
                block.lanes(columns[c].q + b * super_block, sum);
                block.minima_sums(columns[c].sums + b * q8_K_sums, below);
                const float d = columns[c].d[b] * block.d, dmin = -columns[c].d[b] * block.dmin;
                minima = std::fma(dmin, float(below[0] + below[1] + below[2] + below[3]), minima);
                for (std::size_t l = 0; l < 8; ++l) {
                    lane[l] = std::fma(d, float(sum[l]), lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane) + minima;
        }
    }
}

}  // namespace

constinit const WeightFormat q5_K_format = {
    .id = 13,
    .name = "Q5_K",
    .block_weights = super_block,
    .block_bytes = q5_K_bytes,
    .activation = &q8_K_activations,
    .widen = widen_minima_blocks<Codec>,
    .choose = one_family,
    .products = {{.rows = product_of<Q8KColumn, rows_product>}},
};

}  // namespace bankml
