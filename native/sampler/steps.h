// One small class a sampler. Each works on the candidates the one before it left; the last of a chain chooses.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "sampler/breakers.h"
#include "sampler/candidates.h"

namespace sampler {

class Step {
public:
    virtual ~Step() = default;
    // `token` is now part of the text: a token of the prompt, or the one drawn last.
    virtual void accept(int32_t /*token*/) {}
    virtual void apply(Candidates &candidates) = 0;
};

// ---- what changes logits (penalties.cpp, dry.cpp)

// Adds each bias to its token's logit, in order; a token may have several.
std::unique_ptr<Step> make_logit_bias(std::vector<std::pair<int32_t, float>> biases);

// Over the last `last_n` accepted tokens: a repeated token's logit is divided by `repeat` (multiplied when it is not
// positive), then lowered by its count times `frequency` and once by `presence`.
std::unique_ptr<Step> make_penalties(int32_t last_n, float repeat, float frequency, float presence);

// Don't Repeat Yourself: a token that would prolong a repetition of `allowed_length` or more tokens loses
// multiplier * base ^ (length - allowed_length). Repetitions are looked for in the last `last_n` tokens, back to the
// nearest breaker.
std::unique_ptr<Step> make_dry(float multiplier, float base, int32_t allowed_length, int32_t last_n,
                               std::shared_ptr<const Breakers> breakers);

// ---- what drops candidates (truncation.cpp)

// The tokens within `n` standard deviations of the highest logit; the others' logits become -inf.
std::unique_ptr<Step> make_top_n_sigma(float n);
std::unique_ptr<Step> make_top_k(int32_t k);
// Locally typical sampling: the tokens whose surprise is nearest the entropy, up to a mass above `p`.
std::unique_ptr<Step> make_typical_p(float p, size_t min_keep);
std::unique_ptr<Step> make_top_p(float p, size_t min_keep);
std::unique_ptr<Step> make_min_p(float p, size_t min_keep);
// Exclude Top Choices: with `probability`, all tokens of at least `threshold` but the least likely of them go.
std::unique_ptr<Step> make_xtc(float probability, float threshold, size_t min_keep, uint32_t seed);

// ---- temperature (temperature.cpp)

// Logits over `temperature`; at 0 or below the highest alone stays above -inf.
std::unique_ptr<Step> make_temperature(float temperature);
// Between temperature - range and temperature + range, by the entropy of the candidates to the power `exponent`.
std::unique_ptr<Step> make_dynamic_temperature(float temperature, float range, float exponent);

// ---- what chooses (choice.cpp)

std::unique_ptr<Step> make_dist(uint32_t seed);
std::unique_ptr<Step> make_mirostat(int32_t n_vocab, uint32_t seed, float tau, float eta);
std::unique_ptr<Step> make_mirostat_v2(uint32_t seed, float tau, float eta);
std::unique_ptr<Step> make_adaptive_p(float target, float decay, uint32_t seed);

}  // namespace sampler
