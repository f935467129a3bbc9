// A grammar compiled: its elements as positions to stand on, its sets of characters, and what its rules can begin with.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/utf8.h"

namespace bankml::grammar {

// The kinds of elements, by the numbers the parser gives them. A rule is a run of elements: alternatives divided by
// `alternative`, closed by `end`. A set of characters is one `character`, `not_character` or `any`, and what follows of
// `upper` (makes a range of the one before it) and `also` (a further character of the same set).
enum class Kind : std::uint8_t { end, alternative, rule, character, not_character, upper, also, any, token, not_token };

constexpr bool closes(Kind k) { return k == Kind::end || k == Kind::alternative; }
constexpr bool names_token(Kind k) { return k == Kind::token || k == Kind::not_token; }

struct Range {
    std::uint32_t low, high;
    auto operator<=>(const Range &) const = default;
};

struct CharacterSet {
    std::vector<Range> ranges;  // in the grammar's order; a range written backwards holds nothing
    bool negated = false;
    bool any = false;
    std::vector<Range> sorted;  // `ranges` in order, disjoint

    auto operator<=>(const CharacterSet &) const = default;
    bool holds(std::uint32_t character) const;
    // Whether llama.cpp lets a character cut like this stand here: some completion is in the set; for a negated set,
    // none is among what it excludes.
    bool may_hold(Partial part) const;
};

class Program {
public:
    // Elements as (kind, value) in two arrays, the first element of each rule, and the rule to start from.
    // std::invalid_argument where they are no grammar.
    Program(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> values,
            std::span<const std::uint32_t> starts, std::uint32_t root);

    Kind kind(std::uint32_t at) const { return kinds_[at]; }
    // A `rule`'s number, a `token`'s id; for a set of characters its number.
    std::uint32_t value(std::uint32_t at) const { return values_[at]; }
    // The position after the element (all of it, for a set) at `at`.
    std::uint32_t next(std::uint32_t at) const { return next_[at]; }
    bool ends(std::uint32_t at) const { return closes(kinds_[at]); }
    const CharacterSet &set(std::uint32_t number) const { return sets_[number]; }

    std::uint32_t root() const { return root_; }
    std::size_t n_rules() const { return starts_.size(); }
    // The first position of each alternative of a rule.
    std::span<const std::uint32_t> alternatives(std::uint32_t rule) const {
        return {alternatives_.data() + first_alternative_[rule],
                first_alternative_[rule + 1] - first_alternative_[rule]};
    }
    bool nullable(std::uint32_t rule) const { return nullable_[rule]; }
    bool has_tokens() const { return has_tokens_; }

    // Rules that begin with one another form a group; a rule can begin with rules of its own and of lower groups only.
    std::uint32_t group(std::uint32_t rule) const { return group_[rule]; }
    std::span<const std::uint32_t> members(std::uint32_t group) const {
        return {members_.data() + first_member_[group], first_member_[group + 1] - first_member_[group]};
    }
    // A rule that begins with itself such that its stacks would grow without end, or which llama.cpp refuses; -1: none.
    std::int64_t left_recursive() const { return left_recursive_; }

    // Characters that no set tells apart are one class.
    std::uint32_t n_classes() const { return static_cast<std::uint32_t>(class_low_.size()); }
    std::uint32_t class_of(std::uint32_t character) const;
    std::uint32_t representative(std::uint32_t number) const { return class_low_[number]; }

private:
    void read(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> values);
    std::uint32_t read_set(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> values, std::size_t at,
                           CharacterSet &set);
    void find_nullable();
    void find_groups();
    void find_classes();

    std::vector<Kind> kinds_;
    std::vector<std::uint32_t> values_, next_, starts_, alternatives_, first_alternative_;
    std::vector<CharacterSet> sets_;
    std::vector<char> nullable_, empty_alternative_;
    std::vector<std::uint32_t> group_, members_, first_member_, class_low_;
    std::uint32_t root_;
    std::int64_t left_recursive_ = -1;
    bool has_tokens_ = false;
};

}  // namespace bankml::grammar
