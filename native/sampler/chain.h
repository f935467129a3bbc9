#pragma once
#include <memory>
#include <span>
#include <vector>

#include "sampler/steps.h"

namespace sampler {

// Samplers one after another, the last of which chooses. One chain serves one generation on one thread at a time.
class Chain {
public:
    Chain() = default;
    Chain(const Chain &) = delete;
    Chain &operator=(const Chain &) = delete;

    void add(std::unique_ptr<Step> step) { steps_.push_back(std::move(step)); }

    void accept(int32_t token) {
        for (const auto &step : steps_) {
            step->accept(token);
        }
    }

    // Runs the samplers over `logits`, which stay as they are. Running again draws again from the same generators.
    // Throws NotANumber when the parameters make a logit NaN, std::runtime_error when the model did.
    void apply(std::span<const float> logits) {
        candidates_.start(logits);
        for (const auto &step : steps_) {
            step->apply(candidates_);
        }
    }

    // The token that was drawn by the last apply(); std::logic_error when no sampler chose one.
    int32_t chosen() {
        if (candidates_.selected < 0) {
            throw std::logic_error("the chain ends in no sampler that chooses");
        }
        return candidates_.list()[candidates_.selected].id;
    }

    Candidates &candidates() { return candidates_; }

private:
    std::vector<std::unique_ptr<Step>> steps_;
    Candidates candidates_;
};

}  // namespace sampler
