// The definition of attention over an f16 cache.
#include <cmath>
#include <limits>

#include "formats/f16/f16.h"
#include "kernels/half.h"
#include "kernels/lanes.h"
#include "kernels/portable/portable.h"

namespace bankml::portable {
namespace {

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

}  // namespace

void attend_cells(const HeadCache &cache, std::size_t begin, std::size_t end, const float *q, const ScoreRule &rule,
                  OnlineSoftmax &state, float *out, float *) {
    const std::size_t d = cache.head_size;
    float m = state.maximum, s = state.sum;
    for (std::size_t cell = begin; cell < end; ++cell) {
        const float score = rule(f16_dot(cache.k + cell * d, d, q));
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
    state = {m, s};
}

void attend_tile(const HeadCache &cache, const VisibleCells &visible, std::size_t first, std::size_t rows,
                 const float *q, std::size_t ldq, const ScoreRule &rule, float *out, std::size_t ldo, float *) {
    const std::size_t d = cache.head_size, last = visible.end(first + rows - 1);
    const float minus_infinity = -std::numeric_limits<float>::infinity();
    for (std::size_t r = 0; r < rows; ++r) {
        float m = minus_infinity, s = 0.0f;
        float *acc = out + r * ldo;
        for (std::size_t i = 0; i < d; ++i) {
            acc[i] = 0.0f;
        }
        for (std::size_t tile = 0; tile < last; tile += attend_tile_cells) {
            const TilePositions<attend_tile_cells> positions(visible, tile);
            if (!positions.seen_by(visible, first, rows)) {
                continue;
            }
            const std::int32_t hidden = visible.hidden_to(first + r);
            float score[attend_tile_cells];
            float tile_max = minus_infinity;
            for (std::size_t c = 0; c < attend_tile_cells; ++c) {
                score[c] = minus_infinity;
                if (positions.at[c] <= hidden || positions.at[c] > std::int32_t(first + r)) {
                    continue;
                }
                float dot = 0.0f;
                for (std::size_t i = 0; i < d; ++i) {
                    dot = std::fma(half_to_float(cache.k[(tile + c) * d + i]), q[r * ldq + i], dot);
                }
                score[c] = rule(dot) + 0.0f;
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
            for (std::size_t c = 0; c < attend_tile_cells && tile + c < last; ++c) {
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

}  // namespace bankml::portable
