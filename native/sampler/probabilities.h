// What a token's logprobs are made of.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sampler/candidates.h"

namespace sampler {

struct TokenProbabilities {
    float chosen = 0.0f;       // of the token that was drawn
    std::vector<int32_t> ids;  // the top n
    std::vector<float> top;    // and their probabilities
};

// Softmax over the raw `logits`, summed up in the order std::partial_sort leaves the whole vocabulary in when it
// looks for the `n_top` highest: the order decides the last bits. Throws std::runtime_error when a logit is NaN.
TokenProbabilities token_probabilities(std::span<const float> logits, int32_t chosen, size_t n_top);

// The probabilities the last sampler of a chain left, highest first, at most `n_top` and none that is zero.
// Sorts the list, as the reference does. Throws NotANumber when a probability is NaN.
TokenProbabilities chain_probabilities(Candidates &candidates, int32_t chosen, size_t n_top);

// The natural logarithm; JSON has no -inf, so that of 0 is the lowest float.
float log_probability(float p);

}  // namespace sampler
