#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "sampler/steps.h"

namespace sampler {
namespace {

// The probabilities of a list of candidates, as std::discrete_distribution wants to read them.
class ProbabilityIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = float;
    using difference_type = ptrdiff_t;
    using pointer = const float *;
    using reference = const float &;

    explicit ProbabilityIterator(const Candidate *at) : at_(at) {}
    const float &operator*() const { return at_->p; }
    ProbabilityIterator &operator++() {
        ++at_;
        return *this;
    }
    ProbabilityIterator operator++(int) { return ProbabilityIterator(at_++); }
    bool operator==(const ProbabilityIterator &other) const { return at_ == other.at_; }

private:
    const Candidate *at_;
};

ptrdiff_t draw(std::span<const Candidate> all, std::mt19937 &generator) {
    std::discrete_distribution<int> by_probability(ProbabilityIterator(all.data()),
                                                   ProbabilityIterator(all.data() + all.size()));
    return by_probability(generator);
}

// Draws by probability: one double from the generator for every token, also when there is only one to choose.
class Dist final : public Step {
public:
    explicit Dist(uint32_t seed) : generator_(seed) {}

    void apply(Candidates &candidates) override {
        const std::span<Candidate> all = candidates.list();
        std::uniform_real_distribution<double> unit(0.0, 1.0);
        if (all.size() == 1) {
            unit(generator_);
            all[0].p = 1.0f;
            candidates.selected = 0;
            return;
        }
        float highest = all[0].logit;
        if (!candidates.sorted) {
            for (const Candidate &c : all) {
                highest = std::max(highest, c.logit);
            }
        }
        double sum = 0.0;
        for (Candidate &c : all) {
            c.p = expf(c.logit - highest);
            sum += c.p;
        }
        const double target = sum * unit(generator_);
        double so_far = 0.0;
        candidates.selected = static_cast<ptrdiff_t>(all.size()) - 1;
        for (size_t i = 0; i < all.size(); ++i) {
            so_far += all[i].p;
            if (so_far >= target) {
                candidates.selected = static_cast<ptrdiff_t>(i);
                break;
            }
        }
        for (Candidate &c : all) {
            c.p = static_cast<float>(static_cast<double>(c.p) / sum);
        }
    }

private:
    std::mt19937 generator_;
};

// Both versions of mirostat steer the surprise of the drawn tokens, in bits, towards tau.
class Surprise {
public:
    Surprise(uint32_t seed, float tau, float eta) : tau_(tau), eta_(eta), mu_(2.0f * tau), generator_(seed) {}

    float mu() const { return mu_; }

    void choose(Candidates &candidates) {
        candidates.softmax(true);
        const std::span<Candidate> all = candidates.list();
        candidates.selected = draw(all, generator_);
        const float error = -log2f(all[candidates.selected].p) - tau_;
        mu_ = mu_ - eta_ * error;
    }

private:
    float tau_, eta_, mu_;
    std::mt19937 generator_;
};

class Mirostat final : public Step {
public:
    Mirostat(int32_t n_vocab, uint32_t seed, float tau, float eta) : n_vocab_(n_vocab), surprise_(seed, tau, eta) {}

    void apply(Candidates &candidates) override {
        candidates.softmax(true);
        const float s = zipf_exponent(candidates.list());
        const float epsilon = s - 1;
        const float k =
            powf((epsilon * powf(2, surprise_.mu())) / (1 - powf(static_cast<float>(n_vocab_), -epsilon)), 1 / s);
        const int32_t keep = std::max(truncate(k), 1);
        candidates.keep_first(std::min(static_cast<size_t>(keep), candidates.size()));
        surprise_.choose(candidates);
    }

private:
    // Estimated from the likeliest hundred.
    static float zipf_exponent(std::span<const Candidate> all) {
        float products = 0.0f;
        float squares = 0.0f;
        for (size_t i = 0; i < 99 && i + 1 < all.size(); ++i) {
            const float t = logf(static_cast<float>(i + 2) / static_cast<float>(i + 1));
            const float b = logf(all[i].p / all[i + 1].p);
            products += t * b;
            squares += t * t;
        }
        return products / squares;
    }

    int32_t n_vocab_;
    Surprise surprise_;
};

class MirostatV2 final : public Step {
public:
    MirostatV2(uint32_t seed, float tau, float eta) : surprise_(seed, tau, eta) {}

    void apply(Candidates &candidates) override {
        candidates.softmax(true);
        const std::span<Candidate> all = candidates.list();
        const float mu = surprise_.mu();
        const auto cut = std::find_if(all.begin(), all.end(), [mu](const Candidate &c) { return -log2f(c.p) > mu; });
        candidates.keep_first(std::max<size_t>(cut - all.begin(), 1));
        surprise_.choose(candidates);
    }

private:
    Surprise surprise_;
};

// Prefers tokens whose probability is near a target, adapted so that the average of those drawn approaches it.
class AdaptiveP final : public Step {
public:
    AdaptiveP(float target, float decay, uint32_t seed)
        : target_(target),
          decay_(decay),
          weighted_sum_(target / (1.0f - decay)),
          total_weight_(1.0f / (1.0f - decay)),
          generator_(seed) {}

    void apply(Candidates &candidates) override {
        candidates.softmax(false);
        const std::span<Candidate> all = candidates.list();
        if (target_ < 0.0f) {
            candidates.selected = draw(all, generator_);
            return;
        }
        original_.resize(all.size());
        std::transform(all.begin(), all.end(), original_.begin(), [](const Candidate &c) { return c.p; });
        const float target = adapted_target();
        for (Candidate &c : all) {
            if (c.logit != -std::numeric_limits<float>::infinity()) {
                const float distance = std::abs((c.p - target) * per_width);
                c.logit = peak - sharpness * distance * distance / (1.0f + distance);
            }
        }
        candidates.softmax(false);
        candidates.selected = draw(all, generator_);
        pending_ = all[candidates.selected].id;
        pending_p_ = original_[candidates.selected];
    }

    void accept(int32_t token) override {
        if (token == pending_) {
            weighted_sum_ = pending_p_ + decay_ * weighted_sum_;
            total_weight_ = 1.0f + decay_ * total_weight_;
        }
        pending_ = none;
    }

private:
    float adapted_target() const {
        const float target = std::clamp(target_, 0.0f, 1.0f);
        const float adapted = total_weight_ == 0.0f ? target : 2.0f * target - (weighted_sum_ / total_weight_);
        return std::clamp(adapted, 0.0f, 1.0f);
    }

    static constexpr float peak = 5.0f;
    static constexpr float sharpness = 10.0f;
    static constexpr float per_width = 1.0f / 0.3f;
    static constexpr int32_t none = -1;

    float target_, decay_;
    float weighted_sum_, total_weight_;
    std::mt19937 generator_;
    std::vector<float> original_;
    int32_t pending_ = none;
    float pending_p_ = 0.0f;
};

}  // namespace

std::unique_ptr<Step> make_dist(uint32_t seed) { return std::make_unique<Dist>(seed); }

std::unique_ptr<Step> make_mirostat(int32_t n_vocab, uint32_t seed, float tau, float eta) {
    return std::make_unique<Mirostat>(n_vocab, seed, tau, eta);
}

std::unique_ptr<Step> make_mirostat_v2(uint32_t seed, float tau, float eta) {
    return std::make_unique<MirostatV2>(seed, tau, eta);
}

std::unique_ptr<Step> make_adaptive_p(float target, float decay, uint32_t seed) {
    return std::make_unique<AdaptiveP>(target, std::clamp(decay, 0.0f, 0.99f), seed);
}

}  // namespace sampler
