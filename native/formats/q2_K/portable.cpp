#include "formats/q2_K/q2_K.h"
#include "formats/super_blocks.h"

namespace bankml {
namespace {

struct Codec {
    static constexpr std::size_t bytes = q2_K_bytes;
    static float scale(const std::uint8_t *block) { return half_at(block + 80); }
    static float minimum(const std::uint8_t *block) { return half_at(block + 82); }
    static void decode(const std::uint8_t *block, std::int8_t *value, std::int16_t *scales) {
        for (std::size_t i = 0; i < super_block; ++i) {
            value[i] = std::int8_t(block[16 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3);
        }
        for (std::size_t g = 0; g < groups; ++g) {
            scales[g] = block[g] & 15;
        }
    }
};

void rows_product(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t r = 0; r < rows; ++r, w += k / super_block * q2_K_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {};
            for (std::size_t b = 0; b < k / super_block; ++b) {
                const std::uint8_t *block = w + b * q2_K_bytes;
                const std::int16_t *sums = columns[c].sums + b * q8_K_sums;
                const float d = columns[c].d[b] * Codec::scale(block), dmin = -columns[c].d[b] * Codec::minimum(block);
                std::int32_t sum[8];
                Codec::decode(block, value, scales);
                lane_sums(value, scales, columns[c].q + b * super_block, sum);
                for (std::size_t l = 0; l < 8; ++l) {  // two groups' minima a lane
                    const std::int32_t below =
                        (block[2 * l] >> 4) * sums[2 * l] + (block[2 * l + 1] >> 4) * sums[2 * l + 1];
                    lane[l] = std::fma(d, float(sum[l]), std::fma(dmin, float(below), lane[l]));
                }
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

// dequantize_row_q2_K
void widen(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[super_block];
    std::int16_t scales[groups];
    for (std::size_t b = 0; b < columns / super_block; ++b, row += q2_K_bytes, y += super_block) {
        Codec::decode(row, value, scales);
        for (std::size_t i = 0; i < super_block; ++i) {
            const std::size_t g = i / group_values;
            const float scale = Codec::scale(row) * float(scales[g]),
                        minimum = Codec::minimum(row) * float(row[g] >> 4);
            y[i] = scale * float(value[i]) - minimum;
        }
    }
}

}  // namespace

constinit const WeightFormat q2_K_format = {
    .id = 10,
    .name = "Q2_K",
    .block_weights = super_block,
    .block_bytes = Codec::bytes,
    .activation = &q8_K_activations,
    .widen = widen,
    .choose = one_family,
    .products = {{.rows = product_of<Q8KColumn, rows_product>}},
};

}  // namespace bankml
