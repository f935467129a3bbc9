#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampler/steps.h"

namespace sampler {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

class TopNSigma final : public Step {
public:
    explicit TopNSigma(float n) : n_(n) {}

    void apply(Candidates &candidates) override {
        if (candidates.size() <= 1) {
            return;
        }
        if (candidates.is_dense()) {
            mask(candidates.row(), [](float &logit) -> float & { return logit; });
        } else {
            mask(candidates.list(), [](Candidate &c) -> float & { return c.logit; });
        }
    }

private:
    // Logits of -inf count neither for the mean nor for the deviation.
    template <class T, class Logit>
    void mask(std::span<T> all, Logit logit_of) const {
        float highest = logit_of(all[0]);
        float sum = 0.0f;
        size_t n = 0;
        for (T &one : all) {
            const float logit = logit_of(one);
            if (logit != minus_infinity) {
                highest = std::max(highest, logit);
                sum += logit;
                ++n;
            }
        }
        const float mean = n > 0 ? sum / static_cast<float>(n) : 0.0f;
        float squares = 0.0f;
        for (T &one : all) {
            const float logit = logit_of(one);
            if (logit != minus_infinity) {
                const double distance = logit - mean;
                squares = static_cast<float>(static_cast<double>(squares) + distance * distance);
            }
        }
        const float deviation = n > 0 ? std::sqrt(squares / static_cast<float>(n)) : 0.0f;
        const float lowest = highest - n_ * deviation;
        for (T &one : all) {
            if (logit_of(one) < lowest) {
                logit_of(one) = minus_infinity;
            }
        }
    }

    float n_;
};

class TopK final : public Step {
public:
    explicit TopK(size_t k) : k_(k) {}

    void apply(Candidates &candidates) override {
        const size_t k = std::min(k_, candidates.size());
        if (!candidates.sorted) {
            candidates.sort_top(k);
        }
        candidates.keep_first(k);
    }

private:
    size_t k_;
};

class TypicalP final : public Step {
public:
    TypicalP(float p, size_t min_keep) : p_(p), min_keep_(min_keep) {}

    void apply(Candidates &candidates) override {
        candidates.softmax(true);
        const std::span<Candidate> all = candidates.list();
        float entropy = 0.0f;
        for (const Candidate &c : all) {
            entropy += -c.p * logf(c.p);
        }
        // A probability of zero makes the entropy, and with it every distance, NaN: then all compare equal, which is
        // an order std::sort can work with. The distances are never NaN for some candidates only.
        std::vector<float> distance(all.size());
        for (size_t i = 0; i < all.size(); ++i) {
            distance[i] = fabsf(-logf(all[i].p) - entropy);
        }
        std::vector<size_t> order(all.size());
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return distance[a] < distance[b]; });

        std::vector<Candidate> kept;
        float mass = 0.0f;
        for (const size_t i : order) {
            kept.push_back(all[i]);
            mass += all[i].p;
            if (mass > p_ && kept.size() >= min_keep_) {
                break;
            }
        }
        candidates.replace(kept);
        candidates.sorted = false;
    }

private:
    float p_;
    size_t min_keep_;
};

class TopP final : public Step {
public:
    TopP(float p, size_t min_keep) : p_(p), min_keep_(min_keep) {}

    void apply(Candidates &candidates) override {
        // The probabilities are summed up in the order the candidates come in, before any sorting.
        candidates.softmax(false);
        const size_t n = candidates.size();
        if (!candidates.sorted && n <= few_) {
            candidates.sort_top(n);
        }
        if (candidates.sorted) {
            candidates.keep_first(reach(candidates.list()).first);
            return;
        }
        // Most often a few of many candidates reach the mass; only when they do not is all of it sorted.
        bucket_select(candidates.list(), guess_, sorted_);
        auto [kept, reached] = reach({sorted_.data(), guess_});
        if (!reached) {
            bucket_select(candidates.list(), n, sorted_);
            // The sum goes on where it stood, over the newly sorted rest.
            kept = go_on(sorted_, guess_);
        }
        candidates.replace({sorted_.data(), kept});
        candidates.sorted = true;
    }

private:
    // How many of `all` are kept from the front, and whether they reach the mass.
    std::pair<size_t, bool> reach(std::span<const Candidate> all) {
        mass_ = 0.0f;
        for (size_t i = 0; i < all.size(); ++i) {
            mass_ += all[i].p;
            if (mass_ >= p_ && i + 1 >= min_keep_) {
                return {i + 1, true};
            }
        }
        return {all.size(), false};
    }

    size_t go_on(std::span<const Candidate> all, size_t from) {
        for (size_t i = from; i < all.size(); ++i) {
            mass_ += all[i].p;
            if (mass_ >= p_ && i + 1 >= min_keep_) {
                return i + 1;
            }
        }
        return all.size();
    }

    static constexpr size_t few_ = 1024;
    static constexpr size_t guess_ = 256;
    float p_;
    size_t min_keep_;
    float mass_ = 0.0f;
    std::vector<Candidate> sorted_;
};

class MinP final : public Step {
public:
    MinP(float p, size_t min_keep) : log_p_(logf(p)), min_keep_(min_keep) {}

    void apply(Candidates &candidates) override {
        if (!candidates.sorted && filter(candidates)) {
            return;
        }
        if (!candidates.sorted) {
            candidates.sort_top(candidates.size());
        }
        const std::span<Candidate> all = candidates.list();
        const float lowest = all[0].logit + log_p_;
        size_t kept = 1;
        while (kept < all.size() && (all[kept].logit >= lowest || kept < min_keep_)) {
            ++kept;
        }
        candidates.keep_first(kept);
    }

private:
    // Without sorting: in the order they come, those likely enough. False when that leaves fewer than min_keep.
    bool filter(Candidates &candidates) {
        const std::span<Candidate> all = candidates.list();
        float highest = -FLT_MAX;
        for (const Candidate &c : all) {
            highest = std::max(highest, c.logit);
        }
        const float lowest = highest + log_p_;
        kept_.clear();
        for (const Candidate &c : all) {
            if (c.logit >= lowest) {
                kept_.push_back(c);
            }
        }
        if (kept_.empty() || kept_.size() < min_keep_) {
            return false;
        }
        candidates.replace(kept_);
        return true;
    }

    float log_p_;
    size_t min_keep_;
    std::vector<Candidate> kept_;
};

class Xtc final : public Step {
public:
    Xtc(float probability, float threshold, size_t min_keep, uint32_t seed)
        : probability_(probability), threshold_(threshold), min_keep_(min_keep), generator_(seed) {}

    void apply(Candidates &candidates) override {
        if (candidates.size() < 2) {
            return;
        }
        std::uniform_real_distribution<float> chance(0.0f, 1.0f);
        if (chance(generator_) > probability_) {
            return;
        }
        candidates.softmax(true);
        const std::span<Candidate> all = candidates.list();
        size_t likely = 0;
        while (likely < all.size() && all[likely].p >= threshold_) {
            ++likely;
        }
        if (likely > 1 && all.size() - (likely - 1) >= min_keep_) {
            candidates.drop_first(likely - 1);
        }
    }

private:
    float probability_, threshold_;
    size_t min_keep_;
    std::mt19937 generator_;
};

}  // namespace

std::unique_ptr<Step> make_top_n_sigma(float n) { return std::make_unique<TopNSigma>(n); }

std::unique_ptr<Step> make_top_k(int32_t k) {
    if (k < 1) {
        throw std::invalid_argument("top-k keeps at least one token");
    }
    return std::make_unique<TopK>(static_cast<size_t>(k));
}

std::unique_ptr<Step> make_typical_p(float p, size_t min_keep) { return std::make_unique<TypicalP>(p, min_keep); }
std::unique_ptr<Step> make_top_p(float p, size_t min_keep) { return std::make_unique<TopP>(p, min_keep); }
std::unique_ptr<Step> make_min_p(float p, size_t min_keep) { return std::make_unique<MinP>(p, min_keep); }

std::unique_ptr<Step> make_xtc(float probability, float threshold, size_t min_keep, uint32_t seed) {
    return std::make_unique<Xtc>(probability, threshold, min_keep, seed);
}

}  // namespace sampler
