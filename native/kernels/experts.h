// A mixture of experts: a router chooses some of many small MLPs for each row, and their outputs are summed by weight.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/project.h"

namespace bankml {

// One layer's experts: gate and up take the row, down what is between them and gives a row back.
struct ExpertMatrices {
    std::vector<Matrix> gate, up, down;  // one of each an expert
    std::size_t used;                    // experts a row
};

// y[i] += sum over the row's experts of weight * down(silu(gate x[i]) * up x[i]), in the order of their probability.
// logits: n rows of one float an expert. The probabilities are a softmax over all experts; the weights are those of the
// `used` most probable, divided by their sum (build_moe_ffn of llama-graph.cpp, MUL_MAT_ID of ggml). The rows come in
// spans of `span` rows, as for project: the bits of a span do not depend on the others.
void add_experts(Pool &pool, const ExpertMatrices &experts, const float *logits, const float *x, std::size_t n,
                 std::size_t span, float *y);

}  // namespace bankml
