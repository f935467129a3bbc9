#include "tokenizer/special.h"

#include <algorithm>

namespace bankml {

namespace {

// C's isspace in the "C" locale.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

SpecialTokens::SpecialTokens(const std::vector<std::string> &tokens, const std::vector<SpecialRule> &rules,
                             bool parse_special)
    : trie_(1) {
    for (std::size_t id = 0; id < std::min(tokens.size(), rules.size()); ++id) {
        const Cut cut = rules[id].cut;
        if (cut == Cut::always || (cut == Cut::with_parse_special && parse_special)) {
            order_.push_back(static_cast<std::int32_t>(id));
        }
    }
    // Not a stable sort: among tokens of one length the reference's order is std::sort's.
    std::sort(order_.begin(), order_.end(),
              [&](std::int32_t a, std::int32_t b) { return tokens[a].size() > tokens[b].size(); });
    for (std::size_t place = 0; place < order_.size(); ++place) {
        const std::string &text = tokens[order_[place]];
        lengths_.push_back(text.size());
        rules_.push_back(rules[order_[place]]);
        std::uint32_t node = 0;
        for (const char c : text) {
            const auto [at, is_new] = trie_[node].next.emplace(static_cast<unsigned char>(c), trie_.size());
            node = at->second;
            if (is_new) {
                trie_.emplace_back();
            }
        }
        trie_[node].place = static_cast<std::int32_t>(place);
    }
}

std::vector<Fragment> SpecialTokens::cut(std::string_view input) const {
    struct Found {
        std::int32_t place;
        std::size_t begin;
    };
    std::vector<Found> found;
    for (std::size_t begin = 0; begin < input.size(); ++begin) {
        std::uint32_t node = 0;
        for (std::size_t at = begin; at < input.size(); ++at) {
            const auto next = trie_[node].next.find(static_cast<unsigned char>(input[at]));
            if (next == trie_[node].next.end()) {
                break;
            }
            node = next->second;
            if (trie_[node].place >= 0) {
                found.push_back({trie_[node].place, begin});
            }
        }
    }
    std::sort(found.begin(), found.end(), [](const Found &a, const Found &b) {
        return a.place != b.place ? a.place < b.place : a.begin < b.begin;
    });

    // What is taken is at least as long as what comes after it, so an overlap always covers an end of the later one.
    std::vector<bool> taken(found.empty() ? 0 : input.size());
    std::vector<Fragment> cuts;
    for (const Found &f : found) {
        std::size_t begin = f.begin, end = f.begin + lengths_[f.place];
        if (taken[begin] || taken[end - 1]) {
            continue;
        }
        while (rules_[f.place].strips_left && begin > 0 && !taken[begin - 1] && is_space(input[begin - 1])) {
            --begin;
        }
        while (rules_[f.place].strips_right && end < input.size() && !taken[end] && is_space(input[end])) {
            ++end;
        }
        std::fill(taken.begin() + begin, taken.begin() + end, true);
        cuts.push_back({begin, end, order_[f.place]});
    }
    std::sort(cuts.begin(), cuts.end(), [](const Fragment &a, const Fragment &b) { return a.begin < b.begin; });

    std::vector<Fragment> fragments;
    std::size_t at = 0;
    for (const Fragment &f : cuts) {
        if (f.begin > at) {
            fragments.push_back({at, f.begin, -1});
        }
        fragments.push_back(f);
        at = f.end;
    }
    if (at < input.size()) {
        fragments.push_back({at, input.size(), -1});
    }
    return fragments;
}

}  // namespace bankml
