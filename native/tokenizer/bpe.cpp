#include "tokenizer/bpe.h"

#include <queue>
#include <stdexcept>
#include <unordered_map>

#include "tokenizer/merges.h"
#include "tokenizer/special.h"
#include "tokenizer/unicode.h"

namespace bankml {
namespace {

// Merges one word after another; keeps its buffers from word to word.
class Merger {
public:
    explicit Merger(const MergeTable &merges) : merges_(merges) {}

    void append(std::string_view word, std::vector<std::int32_t> &out) {
        parts_.clear();
        for (std::size_t i = 0; i < word.size(); ++i) {
            const auto at = static_cast<std::int32_t>(i);
            parts_.push_back({merges_.byte(static_cast<unsigned char>(word[i])), at - 1, at + 1});
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
    }

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

    void propose(std::int32_t left, std::int32_t right) {
        if (left == NONE || right == NONE) {
            return;
        }
        const std::uint32_t l = parts_[left].string, r = parts_[right].string;
        const MergeTable::Merge &merge = merges_.find(l, r);
        if (merge.rank != MergeTable::NO_RANK) {
            queue_.push({merge.rank, left, right, l, r, merge.made});
        }
    }

    const MergeTable &merges_;
    std::vector<Part> parts_;
    std::priority_queue<Proposal> queue_;
};

}  // namespace

struct Bpe::Tables {
    explicit Tables(const Vocabulary &v)
        : pretokenizer(v.pretokenizer),
          merges(v.tokens, v.merges, v.whole_words),
          plain(v.tokens, v.rules, false),
          special(v.tokens, v.rules, true) {}

    Pretokenizer pretokenizer;
    MergeTable merges;
    SpecialTokens plain, special;
};

Bpe::Bpe(const Vocabulary &vocabulary) {
    if (vocabulary.rules.size() != vocabulary.tokens.size()) {
        throw std::invalid_argument("as many rules as tokens are needed");
    }
    tables_ = std::make_unique<const Tables>(vocabulary);
}

Bpe::~Bpe() = default;

std::vector<std::int32_t> Bpe::encode(std::string_view text, bool parse_special) const {
    std::vector<std::int32_t> out;
    Merger merger(tables_->merges);
    std::vector<char32_t> code_points;
    std::vector<std::size_t> ends;
    std::string word;
    for (const Fragment &fragment : (parse_special ? tables_->special : tables_->plain).cut(text)) {
        if (fragment.token >= 0) {
            out.push_back(fragment.token);
            continue;
        }
        unicode::decode(text.substr(fragment.begin, fragment.end - fragment.begin), code_points);
        ends.clear();
        split_words(tables_->pretokenizer, code_points, ends);
        std::size_t at = 0;
        for (const std::size_t end : ends) {
            word.clear();
            for (; at < end; ++at) {
                unicode::append_utf8(code_points[at], word);
            }
            const std::int32_t whole = tables_->merges.word(word);
            if (whole >= 0) {
                out.push_back(whole);
            } else {
                merger.append(word, out);
            }
        }
    }
    return out;
}

int first_in_hash_order(const std::vector<std::string> &tokens, const std::vector<std::string> &names) {
    std::unordered_map<std::string, std::int32_t> table;  // no reserve: growth decides the order
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        table[tokens[id]] = static_cast<std::int32_t>(id);
    }
    for (const auto &[text, id] : table) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (text == names[i]) {
                return static_cast<int>(i);
            }
        }
    }
    return -1;
}

}  // namespace bankml
