#include "formats/k_minima.h"
#include "formats/q4_K/q4_K.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = q4_K_bytes;
    static void decode(const std::uint8_t *block, std::int8_t *value) {
        for (std::size_t i = 0; i < super_block; ++i) {
            value[i] = std::int8_t(block[16 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15);
        }
    }
};

// ggml_vec_dot_q4_K_q8_K: eight lanes, and four of the minima.
void lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                float *y, std::size_t ldy) {
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * q4_K_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {}, minima[4] = {};
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const MinimaBlock<Codec> block(w + b * q4_K_bytes);
                std::int32_t sum[8], below[4];
                block.lanes(columns[c].q + b * super_block, sum);
                block.minima_sums(columns[c].sums + b * q8_K_sums, below);
                const float d = columns[c].d[b] * block.d, dmin = -columns[c].d[b] * block.dmin;
                for (std::size_t l = 0; l < 4; ++l) {
                    minima[l] = std::fma(dmin, float(below[l]), minima[l]);
                }
                for (std::size_t l = 0; l < 8; ++l) {
                    lane[l] = std::fma(d, float(sum[l]), lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane) + ((minima[0] + minima[2]) + (minima[1] + minima[3]));
        }
    }
}

// One chain for the products and one for the minima, a multiply-add every `parts` parts of 32 weights:
// ggml_gemv_q4_K_8x8_q8_K (8) and ggml_gemm_q4_K_8x8_q8_K (2).
template <std::size_t parts>
void chain_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                float *y, std::size_t ldy) {
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * q4_K_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f, minima = 0.0f;
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const MinimaBlock<Codec> block(w + b * q4_K_bytes);
                const float d = block.d * columns[c].d[b], dmin = block.dmin * columns[c].d[b];
                for (std::size_t first = 0; first < 8; first += parts) {
                    std::int32_t sum = 0, below = 0;
                    for (std::size_t part = first; part < first + parts; ++part) {
                        sum += block.part_sum(columns[c].q + b * super_block, part);
                        below += block.minimum_sum(columns[c].sums + b * q8_K_sums, part);
                    }
                    total = std::fma(float(sum), d, total);
                    minima = std::fma(float(below), dmin, minima);
                }
            }
            y[c * ldy + r] = total - minima;
        }
    }
}

Choice choose(std::size_t rows, std::size_t, std::size_t span) {
    if (rows % 8 != 0) {
        return {q4_K_lanes, 0, 0};
    }
    const std::size_t tail = span % 4;
    return tail == span ? Choice{q4_K_gemv, 0, 0} : Choice{q4_K_gemm, q4_K_gemv, tail};
}

}  // namespace

constinit const WeightFormat q4_K_format = {
    .id = 12,
    .name = "Q4_K",
    .block_weights = super_block,
    .block_bytes = q4_K_bytes,
    .activation = &q8_K_activations,
    .widen = widen_minima_blocks<Codec>,
    .choose = choose,
    .products = {{.rows = product_of<Q8KColumn, chain_rows<8>>},
                 {.rows = product_of<Q8KColumn, chain_rows<2>>},
                 {.rows = product_of<Q8KColumn, lanes_rows>}},
};

}  // namespace bankml
