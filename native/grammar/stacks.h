// Sets of pushdown stacks, each kept once: equal sets have equal numbers.
//
// A stack is read from its top: positions in the grammar, each the next thing to do when all above it is done. A set is
// held as the position on top of each, and for every position the set of what lies below. Stacks that differ only deep
// down share all above, so the number of stacks may be exponential where the size of the set is not.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace bankml::grammar {

using StackSet = std::uint32_t;

struct Top {
    std::uint32_t position;
    StackSet below;
    bool operator==(const Top &) const = default;
};

class StackSets {
public:
    static constexpr StackSet none = 0;   // no stack at all
    static constexpr StackSet empty = 1;  // the one stack with nothing on it

    StackSets();

    bool has_empty(StackSet set) const { return sets_[set].has_empty; }
    // Sorted by position, each once. Lives until a set is made.
    std::span<const Top> tops(StackSet set) const { return {tops_.data() + sets_[set].first, sets_[set].count}; }

    StackSet single(std::uint32_t position, StackSet below);
    // The set of `tops` (any order, positions may repeat; used up) and, with `has_empty`, the empty stack.
    StackSet make(std::vector<Top> &tops, bool has_empty);
    StackSet unite(StackSet a, StackSet b) { return unite(a, b, 0); }

    std::size_t n_sets() const { return sets_.size(); }
    std::size_t bytes() const {
        return sets_.size() * (sizeof(Entry) + 2 * sizeof(StackSet)) + tops_.size() * sizeof(Top) + united_.size() * 40;
    }
    // Forgets all but what `set` needs; its new number.
    StackSet keep_only(StackSet set);

private:
    struct Entry {
        std::uint32_t first, count;
        bool has_empty;
    };

    StackSet unite(StackSet a, StackSet b, int depth);
    StackSet intern(std::span<const Top> tops, bool has_empty);
    void grow();

    std::vector<Entry> sets_;
    std::vector<Top> tops_;
    std::vector<StackSet> table_;  // open addressing; none: free
    std::unordered_map<std::uint64_t, StackSet> united_;
};

}  // namespace bankml::grammar
