#include "grammar/stacks.h"

#include <algorithm>
#include <stdexcept>

namespace bankml::grammar {

namespace {

constexpr int deepest_union = 10'000;          // recursion on the thread's own stack
constexpr std::size_t most_bytes = 64u << 20;  // of all sets together

std::size_t hash(std::span<const Top> tops, bool has_empty) {
    std::uint64_t h = has_empty ? 0x9E3779B97F4A7C15u : 0x2545F4914F6CDD1Du;
    for (const Top &top : tops) {
        h ^= (static_cast<std::uint64_t>(top.position) << 32) | top.below;
        h *= 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    return h;
}

}  // namespace

StackSets::StackSets() : table_(1024, none) {
    sets_.push_back({0, 0, false});
    sets_.push_back({0, 0, true});
}

StackSet StackSets::single(std::uint32_t position, StackSet below) {
    const Top top{position, below};
    return intern({&top, 1}, false);
}

StackSet StackSets::make(std::vector<Top> &tops, bool has_empty) {
    std::sort(tops.begin(), tops.end(), [](const Top &a, const Top &b) {
        return a.position != b.position ? a.position < b.position : a.below < b.below;
    });
    std::size_t kept = 0;
    for (const Top &top : tops) {
        if (kept != 0 && tops[kept - 1].position == top.position) {
            tops[kept - 1].below = unite(tops[kept - 1].below, top.below);
        } else {
            tops[kept++] = top;
        }
    }
    tops.resize(kept);
    return intern(tops, has_empty);
}

StackSet StackSets::unite(StackSet a, StackSet b, int depth) {
    if (a == b || b == none) {
        return a;
    }
    if (a == none) {
        return b;
    }
    if (a > b) {
        std::swap(a, b);
    }
    if (depth > deepest_union) {
        throw std::length_error("the grammar's rules are nested too deeply in one another");
    }
    const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
    if (const auto known = united_.find(key); known != united_.end()) {
        return known->second;
    }
    std::vector<Top> merged;
    const std::uint32_t n_a = sets_[a].count, n_b = sets_[b].count;
    // By index: uniting what lies below may move the tops.
    for (std::uint32_t i = 0, j = 0; i < n_a || j < n_b;) {
        const Top *left = i < n_a ? &tops_[sets_[a].first + i] : nullptr,
                  *right = j < n_b ? &tops_[sets_[b].first + j] : nullptr;
        if (right == nullptr || (left != nullptr && left->position < right->position)) {
            merged.push_back(*left);
            ++i;
        } else if (left == nullptr || right->position < left->position) {
            merged.push_back(*right);
            ++j;
        } else {
            const std::uint32_t position = left->position;
            merged.push_back({position, unite(left->below, right->below, depth + 1)});
            ++i, ++j;
        }
    }
    const StackSet united = intern(merged, sets_[a].has_empty || sets_[b].has_empty);
    united_.emplace(key, united);
    return united;
}

StackSet StackSets::intern(std::span<const Top> tops, bool has_empty) {
    if (tops.empty()) {
        return has_empty ? empty : none;
    }
    std::size_t slot = hash(tops, has_empty) & (table_.size() - 1);
    for (; table_[slot] != none; slot = (slot + 1) & (table_.size() - 1)) {
        const Entry &entry = sets_[table_[slot]];
        if (entry.has_empty == has_empty && std::ranges::equal(tops, this->tops(table_[slot]))) {
            return table_[slot];
        }
    }
    if (bytes() + tops.size() * sizeof(Top) > most_bytes) {
        throw std::length_error("the grammar is too ambiguous: it can be read in too many ways");
    }
    const auto set = static_cast<StackSet>(sets_.size());
    sets_.push_back({static_cast<std::uint32_t>(tops_.size()), static_cast<std::uint32_t>(tops.size()), has_empty});
    tops_.insert(tops_.end(), tops.begin(), tops.end());
    table_[slot] = set;
    if (sets_.size() * 2 > table_.size()) {
        grow();
    }
    return set;
}

void StackSets::grow() {
    table_.assign(table_.size() * 4, none);
    for (StackSet set = empty + 1; set < sets_.size(); ++set) {
        std::size_t slot = hash(tops(set), sets_[set].has_empty) & (table_.size() - 1);
        while (table_[slot] != none) {
            slot = (slot + 1) & (table_.size() - 1);
        }
        table_[slot] = set;
    }
}

StackSet StackSets::keep_only(StackSet set) {
    std::vector<char> needed(sets_.size(), 0);
    needed[set] = 1;
    // What lies below was always made first.
    for (StackSet s = set; s > empty; --s) {
        if (!needed[s]) {
            continue;
        }
        for (const Top &top : tops(s)) {
            needed[top.below] = 1;
        }
    }
    StackSets kept;
    std::vector<StackSet> renamed(sets_.size(), none);
    renamed[empty] = empty;
    std::vector<Top> copy;
    for (StackSet s = empty + 1; s <= set; ++s) {
        if (!needed[s]) {
            continue;
        }
        copy.clear();
        for (const Top &top : tops(s)) {
            copy.push_back({top.position, renamed[top.below]});
        }
        renamed[s] = kept.intern(copy, sets_[s].has_empty);
    }
    const StackSet now = renamed[set];
    *this = std::move(kept);
    return now;
}

}  // namespace bankml::grammar
