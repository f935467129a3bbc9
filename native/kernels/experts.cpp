#include "kernels/experts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "kernels/kernels.h"
#include "kernels/lanes.h"

namespace bankml {
namespace {

// What a sum of weights is at least before it divides them: the smallest normal f16.
constexpr float least_sum = 6.103515625e-5f;

// ggml_vec_soft_max_f32: eight at a time by the polynomial and summed in lanes, the rest by the C library.
void softmax(std::size_t n, float *x) {
    float highest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < n; ++i) {
        highest = std::max(highest, x[i]);
    }
    double sum = 0.0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (std::size_t j = i; j < i + 8; ++j) {
            x[j] = polynomial_exp(x[j] - highest);
        }
        sum += double(sum_lanes(x + i));
    }
    for (; i < n; ++i) {
        x[i] = std::exp(x[i] - highest);
        sum += double(x[i]);
    }
    const float inverse = float(1.0 / sum);
    for (i = 0; i < n; ++i) {
        x[i] *= inverse;
    }
}

// The experts of one row and their weights.
void route(const float *logits, std::size_t experts, std::size_t used, std::int32_t *chosen, float *weights) {
    std::vector<float> probability(logits, logits + experts);
    softmax(experts, probability.data());
    std::vector<std::int32_t> order(experts);
    std::iota(order.begin(), order.end(), 0);
    // The reference sorts all of them by the same algorithm, which decides among equals.
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return probability[std::size_t(a)] > probability[std::size_t(b)];
    });
    double sum = 0.0;
    for (std::size_t k = 0; k < used; ++k) {
        chosen[k] = order[k];
        weights[k] = probability[std::size_t(order[k])];
        sum += double(weights[k]);
    }
    const float divisor = std::max(float(sum), least_sum);
    for (std::size_t k = 0; k < used; ++k) {
        weights[k] /= divisor;
    }
}

// Each pair of a row and one of its experts, those of the first expert first, in the order of the rows.
struct Assigned {
    std::vector<std::size_t> begin;  // of each expert's pairs, and the end of the last
    std::vector<std::size_t> row;    // of each pair
    std::vector<std::size_t> place;  // of row i's k-th expert among the pairs: [i * used + k]
};

Assigned assign(const std::vector<std::int32_t> &chosen, std::size_t experts, std::size_t used) {
    Assigned pairs{std::vector<std::size_t>(experts + 1), std::vector<std::size_t>(chosen.size()),
                   std::vector<std::size_t>(chosen.size())};
    for (const std::int32_t expert : chosen) {
        ++pairs.begin[std::size_t(expert) + 1];
    }
    std::partial_sum(pairs.begin.begin(), pairs.begin.end(), pairs.begin.begin());
    std::vector<std::size_t> next(pairs.begin.begin(), pairs.begin.end() - 1);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const std::size_t at = next[std::size_t(chosen[i])]++;
        pairs.row[at] = i / used;
        pairs.place[i] = at;
    }
    return pairs;
}

// MUL_MAT_ID computes row by row as if each were alone, except in panels, which it takes for enough rows of an expert
// in a span.
void add_jobs(const std::vector<Matrix> &matrices, const Assigned &pairs, std::size_t span, std::size_t offset,
              std::vector<ProductJob> &jobs) {
    for (std::size_t e = 0; e < matrices.size(); ++e) {
        const Matrix &m = matrices[e];
        const bool panels = m.format->choose == &panel_or_lanes;
        for (std::size_t begin = pairs.begin[e], last = pairs.begin[e + 1]; begin < last;) {
            std::size_t end = last;
            if (panels) {
                end = begin + 1;
                while (end < last && pairs.row[end] / span == pairs.row[begin] / span) {
                    ++end;
                }
            }
            const Choice choice = m.format->choose(m.rows, m.columns, panels ? end - begin : 1);
            jobs.push_back({&m, choice.tail == 0 ? choice.family : choice.tail_family, begin, end, offset});
            begin = end;
        }
    }
}

}  // namespace

void add_experts(Pool &pool, const ExpertMatrices &experts, const float *logits, const float *x, std::size_t n,
                 std::size_t span, float *y) {
    const std::size_t count = experts.gate.size(), used = experts.used, all = n * used;
    const std::size_t width = experts.gate[0].columns, inner = experts.gate[0].rows;
    std::vector<std::int32_t> chosen(all);
    std::vector<float> weights(all);
    pool.run(n, [&](std::size_t i, std::size_t) {
        route(logits + i * count, count, used, chosen.data() + i * used, weights.data() + i * used);
    });
    const Assigned pairs = assign(chosen, count, used);
    float *gathered = pool.shared(Pool::Shared::gathered, all * width);
    float *gate_up = pool.shared(Pool::Shared::gate_up, all * 2 * inner);
    float *gated = pool.shared(Pool::Shared::gated, all * inner);
    pool.run(all, [&](std::size_t at, std::size_t) {
        std::copy_n(x + pairs.row[at] * width, width, gathered + at * width);
    });
    std::vector<ProductJob> jobs;
    add_jobs(experts.gate, pairs, span, 0, jobs);
    add_jobs(experts.up, pairs, span, inner, jobs);
    run_products(pool, jobs, gathered, all, width, gate_up, 2 * inner);
    pool.run(all, [&](std::size_t at, std::size_t) {
        const float *gate = gate_up + at * 2 * inner;
        kernels().swiglu(inner, gate, gate + inner, gated + at * inner);
    });
    jobs.clear();
    add_jobs(experts.down, pairs, span, 0, jobs);
    float *outputs = gathered;
    run_products(pool, jobs, gated, all, inner, outputs, width);
    pool.run(n, [&](std::size_t i, std::size_t) {
        for (std::size_t j = 0; j < width; ++j) {
            float sum = outputs[pairs.place[i * used] * width + j] * weights[i * used];
            for (std::size_t k = 1; k < used; ++k) {
                sum += outputs[pairs.place[i * used + k] * width + j] * weights[i * used + k];
            }
            y[i * width + j] += sum;
        }
    });
}

}  // namespace bankml
