#include <algorithm>
#include <cmath>
#include <limits>

#include "sampler/steps.h"

namespace sampler {
namespace {

// The first of the highest logits stays, all others become -inf.
void keep_highest(std::span<Candidate> all) {
    size_t best = 0;
    for (size_t i = 1; i < all.size(); ++i) {
        if (all[i].logit > all[best].logit) {
            best = i;
        }
    }
    for (size_t i = 0; i < all.size(); ++i) {
        if (i != best) {
            all[i].logit = -std::numeric_limits<float>::infinity();
        }
    }
}

void divide(std::span<Candidate> all, float temperature) {
    if (temperature <= 0.0f) {
        keep_highest(all);
        return;
    }
    for (Candidate &c : all) {
        c.logit /= temperature;
    }
    if (!std::isfinite(temperature)) {
        for (const Candidate &c : all) {
            check_number(c.logit, "temperature and dynatemp_range");
        }
    }
}

class Temperature final : public Step {
public:
    explicit Temperature(float temperature) : temperature_(temperature) {}
    void apply(Candidates &candidates) override { divide(candidates.list(), temperature_); }

private:
    float temperature_;
};

class DynamicTemperature final : public Step {
public:
    DynamicTemperature(float temperature, float range, float exponent)
        : lowest_(std::max(0.0f, temperature - range)), highest_(temperature + range), exponent_(exponent) {}

    void apply(Candidates &candidates) override {
        if (candidates.size() <= 1) {
            return;
        }
        const float largest_entropy = -logf(1.0f / static_cast<float>(candidates.size()));
        candidates.softmax(true);
        const std::span<Candidate> all = candidates.list();
        float entropy = 0.0f;
        for (const Candidate &c : all) {
            if (c.p > 0.0f) {
                entropy -= c.p * logf(c.p);
            }
        }
        divide(all, lowest_ + (highest_ - lowest_) * powf(entropy / largest_entropy, exponent_));

        // The probabilities at the new temperature, in double and rounded on the way.
        const double highest = all[0].logit;
        double sum = 0.0;
        for (Candidate &c : all) {
            const double p = exp(static_cast<double>(c.logit) - highest);
            c.p = static_cast<float>(p);
            sum += p;
        }
        for (Candidate &c : all) {
            c.p = static_cast<float>(static_cast<double>(c.p) / sum);
        }
    }

private:
    float lowest_, highest_, exponent_;
};

}  // namespace

std::unique_ptr<Step> make_temperature(float temperature) { return std::make_unique<Temperature>(temperature); }

std::unique_ptr<Step> make_dynamic_temperature(float temperature, float range, float exponent) {
    return std::make_unique<DynamicTemperature>(temperature, range, exponent);
}

}  // namespace sampler
