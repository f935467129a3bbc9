// The definition of attention over a q8_0 cache, one query row of one head.
#include <cmath>

#include "kernels/cache_q8.h"
#include "kernels/half.h"
#include "kernels/lanes.h"
#include "kernels/portable/portable.h"

namespace bankml::portable {
namespace {

const std::int8_t *values_of(const std::uint8_t *block) { return reinterpret_cast<const std::int8_t *>(block + 2); }

// |k| * q with k's sign moved to q, in which -128 has no negative.
std::int32_t product(std::int8_t k, std::int8_t q) {
    if (k == 0) {
        return 0;
    }
    const std::int32_t moved = k < 0 ? std::int8_t(std::uint8_t(-std::int32_t(q))) : q;
    return (k < 0 ? -std::int32_t(k) : std::int32_t(k)) * moved;
}

float dot(const std::uint8_t *k, std::size_t head_size, const Q8Column &q) {
    float lane[8] = {};
    for (std::size_t b = 0; b < head_size / q8_0_values; ++b, k += q8_0_block_bytes) {
        const float d = half_to_float(block_scale(k)) * q.d[b];
        for (std::size_t l = 0; l < 8; ++l) {
            std::int32_t four = 0;
            for (std::size_t i = l * 4; i < l * 4 + 4; ++i) {
                four += product(values_of(k)[i], q.q[b * q8_0_values + i]);
            }
            lane[l] = std::fma(d, float(four), lane[l]);
        }
    }
    return sum_lanes(lane);
}

}  // namespace

void attend_cells_q8(const Q8HeadCache &cache, std::size_t begin, std::size_t end, const Q8Column &q,
                     const ScoreRule &rule, OnlineSoftmax &state, float *out) {
    const std::size_t n = cache.head_size, row = q8_0_row_bytes(n);
    float m = state.maximum, s = state.sum;
    for (std::size_t cell = begin; cell < end; ++cell) {
        const float score = rule(dot(cache.k + cell * row, n, q));
        float rescale = 1.0f, weight = 1.0f;
        if (score > m) {
            rescale = std::exp(m - score);
            m = score;
            for (std::size_t i = 0; i < n; ++i) {
                out[i] *= rescale;
            }
        } else {
            weight = std::exp(score - m);
        }
        const std::uint8_t *v = cache.v + cell * row;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint8_t *block = v + i / q8_0_values * q8_0_block_bytes;
            const float value = float(values_of(block)[i % q8_0_values]) * half_to_float(block_scale(block));
            out[i] = std::fma(value, weight, out[i]);
        }
        s = std::fma(s, rescale, weight);
    }
    state = {m, s};
}

}  // namespace bankml::portable
