// The definition of the q8_0 quantizer and of the Q1_0 and Q2_0 products.
#include "kernels/quantized.h"

#include <cmath>

#include "kernels/lanes.h"

namespace bankml::portable {
namespace {

// The larger, and the second where either is no number: what the reference's instruction does.
float larger(float a, float b) { return a > b ? a : b; }

// The largest magnitude of a block: lane by lane down the four groups of eight, then halves, quarters, the pair.
float block_peak(const float *x) {
    float lane[8];
    for (int i = 0; i < 8; ++i) {
        lane[i] = std::fabs(x[i]);
        for (int j = 8; j < 32; j += 8) {
            lane[i] = larger(lane[i], std::fabs(x[j + i]));
        }
    }
    float four[4];
    for (int i = 0; i < 4; ++i) {
        four[i] = larger(lane[4 + i], lane[i]);
    }
    return larger(larger(four[0], four[2]), larger(four[1], four[3]));
}

std::int8_t pack(float scaled) {
    if (!(std::fabs(scaled) < 2147483648.0f)) {
        return -128;  // the conversion's "indefinite" value, saturated twice
    }
    const float nearest = std::nearbyint(scaled);
    return std::int8_t(nearest < -128.0f ? -128.0f : nearest > 127.0f ? 127.0f : nearest);
}

}  // namespace

void quantize_q8(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum) {
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        const float peak = block_peak(x);
        const float inverse = peak != 0.0f ? 127.0f / peak : 0.0f;
        d[block] = half_to_float(float_to_half(peak / 127.0f));
        sum[block] = 0;
        for (std::size_t i = 0; i < q8_0_values; ++i) {
            q[i] = pack(x[i] * inverse);
            sum[block] += q[i];
        }
    }
}

void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    for (std::size_t r = 0; r < rows; ++r, w += k / q1_0_weights * quantized_block_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {};
            for (std::size_t b = 0; b < k / q1_0_weights; ++b) {
                const std::uint8_t *block = w + b * quantized_block_bytes;
                const float scale = half_to_float(block_scale(block));
                for (std::size_t l = 0; l < 8; ++l) {
                    float part = 0.0f;
                    for (std::size_t j = 0; j < 4; ++j) {
                        std::int32_t four = 0;
                        for (std::size_t i = j * 32 + l * 4; i < j * 32 + l * 4 + 4; ++i) {
                            const std::int8_t q = columns[c].q[b * q1_0_weights + i];
                            const bool positive = block[2 + i / 8] >> (i % 8) & 1;
                            four += positive ? q : std::int8_t(std::uint8_t(-std::int32_t(q)));
                        }
                        const float d = columns[c].d[b * 4 + j];
                        part = j == 0 ? d * float(four) : std::fma(d, float(four), part);
                    }
                    lane[l] = std::fma(scale, part, lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
                std::size_t ldy, float *) {
    q1_0_rows(w, rows, k, columns, n, y, ldy);
}

std::size_t q1_0_block_scratch(std::size_t, std::size_t) { return 0; }

void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    for (std::size_t r = 0; r < rows; ++r, w += k / q2_0_weights * quantized_block_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f;
            for (std::size_t b = 0; b < k / q2_0_weights; ++b) {
                const std::uint8_t *block = w + b * quantized_block_bytes;
                float part = 0.0f;
                for (std::size_t j = 0; j < 2; ++j) {
                    std::int32_t whole = 0;
                    for (std::size_t i = j * 32; i < j * 32 + 32; ++i) {
                        whole += ((block[2 + i / 4] >> (i % 4 * 2) & 3) - 1) * columns[c].q[b * q2_0_weights + i];
                    }
                    part = std::fma(columns[c].d[b * 2 + j], float(whole), part);
                }
                total = std::fma(half_to_float(block_scale(block)), part, total);
            }
            y[c * ldy + r] = total;
        }
    }
}

}  // namespace bankml::portable
