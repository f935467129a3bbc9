// The definition. Slow on purpose where slowness is clearer; every instruction set's table is asserted equal to it.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cache_q8.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/lanes.h"
#include "kernels/quantized.h"

namespace bankml {
namespace {

void round_f16(std::size_t n, const float *x, std::uint16_t *y) {
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = float_to_half(x[i]);
    }
}

void widen_f16(std::size_t n, const std::uint16_t *x, float *y) {
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = half_to_float(x[i]);
    }
}

void through_f16(std::size_t n, const float *x, float *y) {
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = half_to_float(float_to_half(x[i]));
    }
}

// Element i of a step of 32 belongs to accumulator i/8, lane i%8. Accumulators are added (0+2)+(1+3), then the halves of
// the eight lanes, then neighbours twice. What is left of k is multiplied in float and added in double.
float f16_dot(const std::uint16_t *w, std::size_t k, const float *x) {
    const std::size_t whole = k & ~std::size_t{31};
    float acc[32] = {};
    for (std::size_t i = 0; i < whole; ++i) {
        acc[i % 32] = std::fma(half_to_float(w[i]), x[i], acc[i % 32]);
    }
    float lane[8];
    for (int i = 0; i < 8; ++i) {
        lane[i] = (acc[8 + i] + acc[24 + i]) + (acc[i] + acc[16 + i]);
    }
    const float t0 = lane[4] + lane[0], t1 = lane[5] + lane[1], t2 = lane[6] + lane[2], t3 = lane[7] + lane[3];
    double sum = double((t0 + t1) + (t2 + t3));
    for (std::size_t i = whole; i < k; ++i) {
        sum += double(half_to_float(w[i]) * x[i]);
    }
    return float(sum);
}

void f16_dot_rows(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, float *y) {
    for (std::size_t r = 0; r < rows; ++r) {
        y[r] = f16_dot(w + r * k, k, x);
    }
}

void f16_block(const std::uint16_t *w, std::size_t rows, std::size_t k, const float *x, std::size_t columns, float *y,
               std::size_t ldy, float *) {
    for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            float lane[8] = {};
            for (std::size_t i = 0; i < k; ++i) {
                lane[i % 8] = std::fma(half_to_float(w[r * k + i]), x[c * k + i], lane[i % 8]);
            }
            y[c * ldy + r] = sum_lanes(lane);
        }
    }
}

void rms_norm(std::size_t n, const float *x, const float *weight, float eps, float *y) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += double(x[i] * x[i]);
    }
    const float mean = float(sum / double(n));
    const float scale = 1.0f / std::sqrt(mean + eps);
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = (x[i] * scale) * weight[i];
    }
}

void swiglu(std::size_t n, const float *gate, const float *up, float *y) {
    const std::size_t whole = n & ~std::size_t{7};
    for (std::size_t i = 0; i < whole; ++i) {
        y[i] = (gate[i] / (1.0f + polynomial_exp(0.0f - gate[i]))) * up[i];
    }
    for (std::size_t i = whole; i < n; ++i) {  // the reference's tail calls libm
        y[i] = (gate[i] / (1.0f + std::exp(-gate[i]))) * up[i];
    }
}

#include "kernels/rotate.inc"

void add(std::size_t n, float *x, const float *y) {
    for (std::size_t i = 0; i < n; ++i) {
        x[i] += y[i];
    }
}

void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, float scale,
                  float *maximum, float *sum, float *out, float *) {
    const std::size_t d = cache.head_size;
    float m = -std::numeric_limits<float>::infinity(), s = 0.0f;
    for (std::size_t i = 0; i < d; ++i) {
        out[i] = 0.0f;
    }
    for (std::size_t cell = begin; cell < end; ++cell) {
        const float score = f16_dot(cache.k + cell * d, d, q) * scale;
        float rescale = 1.0f, weight = 1.0f;
        if (score > m) {
            rescale = std::exp(m - score);
            m = score;
            for (std::size_t i = 0; i < d; ++i) {
                out[i] = half_to_float(float_to_half(out[i] * rescale));
            }
        } else {
            weight = std::exp(score - m);
        }
        for (std::size_t i = 0; i < d; ++i) {
            out[i] = half_to_float(float_to_half(std::fma(half_to_float(cache.v[cell * d + i]), weight, out[i])));
        }
        s = std::fma(s, rescale, weight);
    }
    *maximum = m;
    *sum = s;
}

// One row's softmax over a tile's scores, in place: the sum is taken eight at a time, then in double.
double softmax_row(float *score, float m) {
    double sum = 0.0;
    for (std::size_t i = 0; i < attend_tile_cells; i += 8) {
        for (std::size_t j = i; j < i + 8; ++j) {
            score[j] = polynomial_exp(score[j] - m);
        }
        sum += double(sum_lanes(score + i));
    }
    return sum;
}

void attend_tile(const HeadCache &cache, std::size_t first, std::size_t rows, const float *q, std::size_t ldq, float scale,
                 float *out, std::size_t ldo, float *) {
    const std::size_t d = cache.head_size, visible = first + rows;
    const float minus_infinity = -std::numeric_limits<float>::infinity();
    for (std::size_t r = 0; r < rows; ++r) {
        float m = minus_infinity, s = 0.0f;
        float *acc = out + r * ldo;
        for (std::size_t i = 0; i < d; ++i) {
            acc[i] = 0.0f;
        }
        for (std::size_t tile = 0; tile < visible; tile += attend_tile_cells) {
            float score[attend_tile_cells];
            float tile_max = minus_infinity;
            for (std::size_t c = 0; c < attend_tile_cells; ++c) {
                score[c] = minus_infinity;
                if (tile + c > first + r) {
                    continue;
                }
                float dot = 0.0f;
                for (std::size_t i = 0; i < d; ++i) {
                    dot = std::fma(half_to_float(cache.k[(tile + c) * d + i]), q[r * ldq + i], dot);
                }
                score[c] = dot * scale + 0.0f;
                tile_max = tile_max > score[c] ? tile_max : score[c];
            }
            if (tile_max == minus_infinity) {
                for (std::size_t c = 0; c < attend_tile_cells; ++c) {
                    score[c] = 0.0f;
                }
            } else {
                const float grown = std::fmax(m, tile_max);
                if (grown > m) {
                    const float rescale = std::exp(m - grown);
                    for (std::size_t i = 0; i < d; ++i) {
                        acc[i] *= rescale;
                    }
                    s *= rescale;
                }
                m = grown;
                s = float(double(s) + softmax_row(score, m));
            }
            for (std::size_t c = 0; c < attend_tile_cells && tile + c < visible; ++c) {
                for (std::size_t i = 0; i < d; ++i) {
                    acc[i] = std::fma(half_to_float(cache.v[(tile + c) * d + i]), score[c], acc[i]);
                }
            }
        }
        const float inverse = s == 0.0f ? 0.0f : 1.0f / s;
        for (std::size_t i = 0; i < d; ++i) {
            acc[i] *= inverse;
        }
    }
}

}  // namespace

const Kernels portable_kernels = {
    .name = "portable",
    .round_f16 = round_f16,
    .widen_f16 = widen_f16,
    .through_f16 = through_f16,
    .f16_dot_rows = f16_dot_rows,
    .f16_block = f16_block,
    .quantize_q8 = portable::quantize_q8,
    .q1_0_rows = portable::q1_0_rows,
    .q1_0_block = portable::q1_0_block,
    .q1_0_block_scratch = portable::q1_0_block_scratch,
    .q2_0_rows = portable::q2_0_rows,
    .rms_norm = rms_norm,
    .swiglu = swiglu,
    .add = add,
    .rotate = rotate,
    .attend_cells = attend_cells,
    .attend_tile = attend_tile,
    .hadamard = portable::hadamard,
    .attend_cells_q8 = portable::attend_cells_q8,
};

}  // namespace bankml
