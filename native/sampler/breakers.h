// What ends a repetition for DRY.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sampler {

// The texts of a vocabulary, one after another in one buffer.
class TokenTexts {
public:
    explicit TokenTexts(const std::vector<std::string_view> &texts) {
        begin_.reserve(texts.size() + 1);
        begin_.push_back(0);
        for (const std::string_view text : texts) {
            all_.append(text);
            begin_.push_back(all_.size());
        }
    }

    size_t size() const { return begin_.size() - 1; }
    std::string_view operator[](size_t token) const {
        return std::string_view(all_).substr(begin_[token], begin_[token + 1] - begin_[token]);
    }

private:
    std::string all_;
    std::vector<size_t> begin_;
};

// The token sequences in which sequence breakers begin: a first token, and the tokens that follow it.
class Breakers {
public:
    // Adds `breaker`, not empty: every token whose text contains it, alone; and every token whose text ends in its
    // first n bytes, 0 < n < size, followed by rests[n - 1], the tokens of the other bytes.
    void add(const TokenTexts &texts, std::string_view breaker, const std::vector<std::vector<int32_t>> &rests) {
        if (breaker.empty() || rests.size() + 1 != breaker.size()) {
            throw std::invalid_argument("a breaker is not empty and has one rest for each of its bytes but the last");
        }
        for (size_t i = 0; i < texts.size(); ++i) {
            const int32_t token = static_cast<int32_t>(i);
            const std::string_view text = texts[i];
            if (text.find(breaker) != std::string_view::npos) {
                add_sequence(token, {});
                continue;
            }
            for (size_t at = text.find(breaker[0]); at != std::string_view::npos; at = text.find(breaker[0], at + 1)) {
                const size_t n = text.size() - at;
                if (n < breaker.size() && text.substr(at) == breaker.substr(0, n)) {
                    add_sequence(token, rests[n - 1]);
                }
            }
        }
    }

    void add_sequence(int32_t first, const std::vector<int32_t> &rest) {
        const auto [begin, end] = sequences_.equal_range(first);
        if (std::none_of(begin, end, [&rest](const auto &known) { return known.second == rest; })) {
            sequences_.emplace(first, rest);
        }
    }

    auto starting_with(int32_t token) const { return sequences_.equal_range(token); }
    size_t size() const { return sequences_.size(); }

private:
    std::unordered_multimap<int32_t, std::vector<int32_t>> sequences_;
};

}  // namespace sampler
