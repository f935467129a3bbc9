#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "sampler/steps.h"

namespace sampler {
namespace {

class Dry final : public Step {
public:
    Dry(float multiplier, float base, int32_t allowed_length, int32_t last_n, std::shared_ptr<const Breakers> breakers)
        : multiplier_(multiplier),
          base_(base),
          allowed_(allowed_length),
          last_n_(last_n),
          breakers_(std::move(breakers)) {
        // Keeps base ^ exponent below the largest float, whose natural logarithm this is.
        constexpr float log_of_largest = 88.7228391f;
        if (base_ > 1.000001f) {
            largest_exponent_ = static_cast<int32_t>(log_of_largest / std::log(base_));
        }
    }

    void accept(int32_t token) override {
        recent_.push_front(token);
        if (recent_.size() > static_cast<size_t>(last_n_)) {
            recent_.pop_back();
        }
    }

    void apply(Candidates &candidates) override {
        const int32_t n = static_cast<int32_t>(recent_.size());
        if (n <= allowed_) {
            return;
        }
        const int32_t limit = distance_to_breaker();
        if (limit < allowed_) {
            return;
        }
        find_repetitions(limit);
        if (candidates.is_dense()) {
            const std::span<float> row = candidates.row();
            for (const auto &[token, length] : repetition_) {
                if (token >= 0 && static_cast<size_t>(token) < row.size()) {
                    row[token] = penalized(row[token], token, length);
                }
            }
        } else {
            for (Candidate &c : candidates.list()) {
                const auto found = repetition_.find(c.id);
                if (found != repetition_.end()) {
                    c.logit = penalized(c.logit, c.id, found->second);
                }
            }
        }
        candidates.sorted = false;
    }

private:
    // How many of the latest tokens come after the nearest breaker: no repetition counts as longer.
    int32_t distance_to_breaker() const {
        const int32_t n = static_cast<int32_t>(recent_.size());
        for (int32_t back = 0; back < n; ++back) {
            int32_t longest_tail = -1;
            const auto [begin, end] = breakers_->starting_with(recent_[back]);
            for (auto it = begin; it != end; ++it) {
                const std::vector<int32_t> &tail = it->second;
                const int32_t length = static_cast<int32_t>(tail.size());
                if (length > longest_tail && length <= back && tail_follows(tail, back)) {
                    longest_tail = length;
                }
            }
            if (longest_tail >= 0) {
                return back - longest_tail;
            }
        }
        return n;
    }

    bool tail_follows(const std::vector<int32_t> &tail, int32_t back) const {
        for (size_t i = 0; i < tail.size(); ++i) {
            if (tail[i] != recent_[back - 1 - static_cast<int32_t>(i)]) {
                return false;
            }
        }
        return true;
    }

    // With the text read backwards, the Z function gives for each earlier place how many tokens before it equal the
    // latest ones; the token that came next there is the one that would prolong the repetition.
    void find_repetitions(int32_t limit) {
        const int32_t n = static_cast<int32_t>(recent_.size());
        z_.assign(n, 0);
        repetition_.clear();
        int32_t left = 0, right = 0;  // the match [left, right) that reaches furthest
        for (int32_t k = 1; k < n; ++k) {
            int32_t length = k < right ? std::min(right - k, z_[k - left]) : 0;
            while (k + length < n && recent_[length] == recent_[k + length]) {
                ++length;
            }
            z_[k] = length;
            if (k + length > right) {
                left = k;
                right = k + length;
            }
            const int32_t counted = std::min(length, limit);
            if (counted >= allowed_) {
                int32_t &longest = repetition_.try_emplace(recent_[k - 1], counted).first->second;
                longest = std::max(longest, counted);
            }
        }
    }

    float penalized(float logit, int32_t token, int32_t length) const {
        const auto [begin, end] = breakers_->starting_with(token);
        if (std::any_of(begin, end, [](const auto &breaker) { return breaker.second.empty(); })) {
            return logit;  // the token ends a repetition by itself
        }
        int32_t exponent = length - allowed_;
        if (largest_exponent_ > 0) {
            exponent = std::min(exponent, largest_exponent_);
        }
        const float penalty =
            static_cast<float>(multiplier_ * std::pow(static_cast<double>(base_), static_cast<double>(exponent)));
        logit -= penalty;
        check_number(logit, "dry_multiplier and dry_base");
        return logit;
    }

    float multiplier_, base_;
    int32_t allowed_, last_n_;
    int32_t largest_exponent_ = 0;
    std::shared_ptr<const Breakers> breakers_;
    std::deque<int32_t> recent_;  // the latest token first
    std::vector<int32_t> z_;
    std::unordered_map<int32_t, int32_t> repetition_;  // token -> longest repetition it would prolong
};

}  // namespace

std::unique_ptr<Step> make_dry(float multiplier, float base, int32_t allowed_length, int32_t last_n,
                               std::shared_ptr<const Breakers> breakers) {
    if (last_n < 1) {
        throw std::invalid_argument("DRY needs a window of at least one token");
    }
    return std::make_unique<Dry>(multiplier, base, allowed_length, last_n, std::move(breakers));
}

}  // namespace sampler
