#include "sampler/probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sampler {

TokenProbabilities token_probabilities(std::span<const float> logits, int32_t chosen, size_t n_top) {
    Candidates candidates;
    candidates.start(logits);
    const std::span<Candidate> all = candidates.list();
    n_top = std::min(n_top, all.size());
    if (n_top > 0) {  // asked for none, partial_sort would still move elements
        std::partial_sort(all.begin(), all.begin() + n_top, all.end(),
                          [](const Candidate &a, const Candidate &b) { return a.logit > b.logit; });
    }
    // Whether the first is the highest is all `sorted` means to softmax.
    candidates.sorted = n_top > 0;
    candidates.softmax(false);

    TokenProbabilities result;
    for (const Candidate &c : all) {
        if (c.id == chosen) {
            result.chosen = c.p;
            break;
        }
    }
    for (const Candidate &c : all.first(n_top)) {
        result.ids.push_back(c.id);
        result.top.push_back(c.p);
    }
    return result;
}

TokenProbabilities chain_probabilities(Candidates &candidates, int32_t chosen, size_t n_top) {
    const std::span<Candidate> all = candidates.list();
    if (!candidates.sorted) {
        for (const Candidate &c : all) {
            check_number(c.p, "the samplers' probabilities");
        }
        std::sort(all.begin(), all.end(), [](const Candidate &a, const Candidate &b) { return a.p > b.p; });
        candidates.sorted = true;
    }
    TokenProbabilities result;
    for (const Candidate &c : all) {
        if (c.id == chosen) {
            result.chosen = c.p;
            break;
        }
    }
    for (const Candidate &c : all.first(std::min(n_top, all.size()))) {
        if (c.p == 0.0f) {
            break;
        }
        result.ids.push_back(c.id);
        result.top.push_back(c.p);
    }
    return result;
}

float log_probability(float p) { return p == 0.0f ? std::numeric_limits<float>::lowest() : logf(p); }

}  // namespace sampler
