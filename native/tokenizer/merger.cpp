#include "tokenizer/merger.h"

namespace bankml {

void Merger::add(std::uint32_t string) {
    const auto at = static_cast<std::int32_t>(parts_.size());
    parts_.push_back({string, at - 1, at + 1});
}

void Merger::merge(std::vector<std::int32_t> &out) {
    if (parts_.empty()) {
        return;
    }
    parts_.back().next = NONE;
    for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(parts_.size()); ++i) {
        propose(i, i + 1);
    }
    while (!queue_.empty()) {
        const Proposal p = queue_.top();
        queue_.pop();
        Part &left = parts_[p.left], &right = parts_[p.right];
        // A part only ever grows or goes, so a proposal whose strings are still there is still valid.
        if (left.string != p.left_string || right.string != p.right_string) {
            continue;
        }
        left.string = p.made;
        left.next = right.next;
        right.string = GONE;
        if (left.next != NONE) {
            parts_[left.next].previous = p.left;
        }
        propose(left.previous, p.left);
        propose(p.left, left.next);
    }
    for (const Part &part : parts_) {
        if (part.string != GONE) {
            merges_.append_tokens(part.string, out);
        }
    }
    parts_.clear();
}

void Merger::propose(std::int32_t left, std::int32_t right) {
    if (left == NONE || right == NONE) {
        return;
    }
    const std::uint32_t l = parts_[left].string, r = parts_[right].string;
    const MergeTable::Merge &merge = merges_.find(l, r);
    if (merge.rank != MergeTable::NO_RANK) {
        queue_.push({merge.rank, left, right, l, r, merge.made});
    }
}

}  // namespace bankml
