// Products over blocks of 32 weights, the definition, for formats whose blocks decode to signed or unsigned bytes. A
// codec has `bytes`, `decode(block, out[32])` and `scale(block)`; where a block has a minimum, `minimum(block)`.
#pragma once
#include <cmath>

#include "formats/format.h"
#include "kernels/half.h"
#include "kernels/lanes.h"

namespace bankml {

inline constexpr std::size_t small_block = 32;

inline float half_at(const std::uint8_t *p) { return half_to_float(block_scale(p)); }

// |w| * q with w's sign moved to q, of which -128 stays -128 (_mm256_sign_epi8, then _mm256_maddubs_epi16).
inline std::int32_t signed_product(std::int8_t w, std::int8_t q) {
    if (w == 0) {
        return 0;
    }
    const std::int32_t moved = w < 0 ? std::int8_t(std::uint8_t(-std::int32_t(q))) : q;
    return (w < 0 ? -std::int32_t(w) : std::int32_t(w)) * moved;
}

inline std::int32_t signed_sum(const std::int8_t *w, const std::int8_t *q, std::size_t n) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += signed_product(w[i], q[i]);
    }
    return sum;
}

// Low nibbles are the first half of a block, high nibbles the second.
inline void split_nibbles(const std::uint8_t *packed, std::int8_t *out) {
    for (std::size_t i = 0; i < 16; ++i) {
        out[i] = std::int8_t(packed[i] & 15);
        out[16 + i] = std::int8_t(packed[i] >> 4);
    }
}

namespace portable {

// Eight lanes of four neighbours, one fused multiply-add a block and lane: ggml_vec_dot_q8_0_q8_0 and its like, and
// tinyBLAS_Q0_AVX.
template <class Codec>
void lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy) {
    std::int8_t value[small_block];
    for (std::size_t r = 0; r < rows; ++r, w += k / small_block * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {};
            for (std::size_t b = 0; b < k / small_block; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                Codec::decode(block, value);
                const float d = Codec::scale(block) * columns[c].d[b];
                for (std::size_t l = 0; l < 8; ++l) {
                    const std::int32_t four = signed_sum(value + l * 4, columns[c].q + b * small_block + l * 4, 4);
                    lane[l] = std::fma(d, float(four), lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

// The same for unsigned values with a minimum a block, whose products are one more chain: ggml_vec_dot_q4_1_q8_1 and
// its like.
template <class Codec>
void minimum_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8_1Column *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    std::int8_t value[small_block];
    for (std::size_t r = 0; r < rows; ++r, w += k / small_block * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[8] = {}, minima = 0.0f;
            for (std::size_t b = 0; b < k / small_block; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                Codec::decode(block, value);
                minima = std::fma(Codec::minimum(block), columns[c].s[b], minima);
                const float d = Codec::scale(block) * columns[c].d[b];
                for (std::size_t l = 0; l < 8; ++l) {
                    std::int32_t four = 0;
                    for (std::size_t i = l * 4; i < l * 4 + 4; ++i) {
                        four += value[i] * columns[c].q[b * small_block + i];
                    }
                    lane[l] = std::fma(d, float(four), lane[l]);
                }
            }
            y[c * ldy + r] = sum_lanes(lane) + minima;
        }
    }
}

// Eight lanes twice, for blocks of even and of odd number, added at the end; a last block without a partner is one more
// multiply-add of its whole sum: ggml_vec_dot_iq4_nl_q8_0, ggml_vec_dot_mxfp4_q8_0.
template <class Codec>
void pairs_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy) {
    const std::size_t blocks = k / small_block, paired = blocks / 2 * 2;
    std::int8_t value[small_block];
    for (std::size_t r = 0; r < rows; ++r, w += blocks * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float lane[16] = {};
            for (std::size_t b = 0; b < paired; ++b) {
                Codec::decode(w + b * Codec::bytes, value);
                const float d = columns[c].d[b] * Codec::scale(w + b * Codec::bytes);
                for (std::size_t l = 0; l < 8; ++l) {
                    const std::int32_t four = signed_sum(value + l * 4, columns[c].q + b * small_block + l * 4, 4);
                    float &sum = lane[b % 2 * 8 + l];
                    sum = std::fma(d, float(four), sum);
                }
            }
            for (std::size_t l = 0; l < 8; ++l) {
                lane[l] += lane[8 + l];
            }
            float total = sum_lanes(lane);
            if (paired < blocks) {
                Codec::decode(w + paired * Codec::bytes, value);
                std::int32_t sum = 0;
                for (std::size_t i = 0; i < small_block; ++i) {
                    sum += value[i] * columns[c].q[paired * small_block + i];
                }
                total = std::fma(columns[c].d[paired] * Codec::scale(w + paired * Codec::bytes), float(sum), total);
            }
            y[c * ldy + r] = total;
        }
    }
}

// One chain a row, the sum of a block's products in integers: what the reference computes over its repacked rows of
// eight (gemv_q4_b32_8x8_q8_0_lut_avx and the gemm beside it).
template <class Codec>
void chain_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy) {
    std::int8_t value[small_block];
    for (std::size_t r = 0; r < rows; ++r, w += k / small_block * Codec::bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f;
            for (std::size_t b = 0; b < k / small_block; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                Codec::decode(block, value);
                const std::int32_t sum = signed_sum(value, columns[c].q + b * small_block, small_block);
                total = std::fma(float(sum), Codec::scale(block) * columns[c].d[b], total);
            }
            y[c * ldy + r] = total;
        }
    }
}

}  // namespace portable

// A row as float32: value * scale, plus the minimum where there is one; each operation rounded.
template <class Codec>
void widen_blocks(const std::uint8_t *row, std::size_t columns, float *y) {
    std::int8_t value[small_block];
    for (std::size_t b = 0; b < columns / small_block; ++b, row += Codec::bytes, y += small_block) {
        Codec::decode(row, value);
        const float d = Codec::scale(row);
        for (std::size_t i = 0; i < small_block; ++i) {
            y[i] = float(value[i]) * d;
            if constexpr (requires { Codec::minimum(row); }) {
                y[i] += Codec::minimum(row);
            }
        }
    }
}

}  // namespace bankml
