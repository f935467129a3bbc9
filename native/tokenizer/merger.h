// Merging the strings of one word, best pair first.
#pragma once
#include <cstdint>
#include <queue>
#include <vector>

#include "tokenizer/merges.h"

namespace bankml {

// Merges one word after another; keeps its buffers from word to word.
class Merger {
public:
    explicit Merger(const MergeTable &merges) : merges_(merges) {}

    // The next string that the word begins as.
    void add(std::uint32_t string);

    // Merges what was added, appends its tokens and begins a new word.
    void merge(std::vector<std::int32_t> &out);

private:
    static constexpr std::int32_t NONE = -1;
    static constexpr std::uint32_t GONE = 0xFFFFFFFF;
    struct Part {
        std::uint32_t string;
        std::int32_t previous, next;
    };
    struct Proposal {
        std::uint32_t rank;
        std::int32_t left, right;
        std::uint32_t left_string, right_string, made;
        // The lowest rank first, the leftmost of equals.
        bool operator<(const Proposal &other) const {
            return rank != other.rank ? rank > other.rank : left > other.left;
        }
    };

    void propose(std::int32_t left, std::int32_t right);

    const MergeTable &merges_;
    std::vector<Part> parts_;
    std::priority_queue<Proposal> queue_;
};

}  // namespace bankml
