#include <cmath>
#include <deque>
#include <unordered_map>

#include "sampler/steps.h"

namespace sampler {
namespace {

class LogitBias final : public Step {
public:
    explicit LogitBias(std::vector<std::pair<int32_t, float>> biases) : biases_(std::move(biases)) {}

    // It comes first in every chain, where a token's place is its id.
    void apply(Candidates &candidates) override {
        if (!candidates.is_dense()) {
            throw std::logic_error("logit_bias comes first in a chain");
        }
        const std::span<float> row = candidates.row();
        for (const auto &[token, bias] : biases_) {
            if (token >= 0 && static_cast<size_t>(token) < row.size()) {
                row[token] += bias;
                check_number(row[token], "logit_bias");
            }
        }
    }

private:
    std::vector<std::pair<int32_t, float>> biases_;
};

class Penalties final : public Step {
public:
    Penalties(int32_t last_n, float repeat, float frequency, float presence)
        : last_n_(last_n), repeat_(repeat), frequency_(frequency), presence_(presence) {}

    void accept(int32_t token) override {
        ++count_[token];
        window_.push_back(token);
        if (window_.size() > static_cast<size_t>(last_n_)) {
            const auto oldest = count_.find(window_.front());
            if (--oldest->second == 0) {
                count_.erase(oldest);
            }
            window_.pop_front();
        }
    }

    void apply(Candidates &candidates) override {
        if (candidates.is_dense()) {
            const std::span<float> row = candidates.row();
            for (const auto &[token, count] : count_) {
                if (token >= 0 && static_cast<size_t>(token) < row.size()) {
                    row[token] = penalized(row[token], count);
                }
            }
        } else {
            for (Candidate &c : candidates.list()) {
                const auto found = count_.find(c.id);
                if (found != count_.end()) {
                    c.logit = penalized(c.logit, found->second);
                }
            }
        }
        candidates.sorted = false;
    }

private:
    float penalized(float logit, int32_t count) const {
        if (logit <= 0) {
            logit *= repeat_;
        } else {
            logit /= repeat_;
        }
        logit -= static_cast<float>(count) * frequency_ + 1.0f * presence_;
        check_number(logit, "repeat_penalty, frequency_penalty and presence_penalty");
        return logit;
    }

    int32_t last_n_;
    float repeat_, frequency_, presence_;
    std::deque<int32_t> window_;
    std::unordered_map<int32_t, int32_t> count_;
};

}  // namespace

std::unique_ptr<Step> make_logit_bias(std::vector<std::pair<int32_t, float>> biases) {
    return std::make_unique<LogitBias>(std::move(biases));
}

std::unique_ptr<Step> make_penalties(int32_t last_n, float repeat, float frequency, float presence) {
    if (last_n < 1) {
        throw std::invalid_argument("penalties need a window of at least one token");
    }
    return std::make_unique<Penalties>(last_n, repeat, frequency, presence);
}

}  // namespace sampler
