// A grammar at work: from a set of stacks and a character to the next set, computed once and remembered.
#pragma once
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_set>
#include <vector>

#include "grammar/program.h"
#include "grammar/stacks.h"

namespace bankml::grammar {

// A state is a set of stacks each of which has a set of characters or a token on top, or nothing left: then the grammar
// is complete. The state without a stack is the dead end.
using State = StackSet;

class Automaton {
public:
    static constexpr State dead = StackSets::none;

    // std::length_error, here and in every step, when the grammar is more than can be held; of no use afterwards.
    explicit Automaton(std::shared_ptr<const Program> program);

    const Program &program() const { return *program_; }
    State start() const { return start_; }
    bool complete(State state) const { return stacks_.has_empty(state); }
    std::span<const Top> tops(State state) const { return stacks_.tops(state); }
    bool names_tokens(State state) const;

    // After one character of class `number`.
    State step(State state, std::uint32_t number) {
        const std::uint32_t table = state < table_of_.size() ? table_of_[state] : 0;
        if (table != 0) {
            const State known = tables_[static_cast<std::size_t>(table - 1) * n_classes_ + number];
            if (known != unknown) {
                return known;
            }
        }
        return compute(state, number);
    }
    // After the token `token`, as far as it stands for a token of the grammar.
    State step_token(State state, std::uint32_t token);
    // Without the stacks that a whole token leaves behind when no character of it is complete: the empty one and those
    // that want a token of the grammar.
    State waiting(State state);
    State unite(State a, State b) { return stacks_.unite(a, b); }
    // Whether a character cut like this may stand here.
    bool may_hold(State state, Partial part) const;
    bool wants_token(State state, std::uint32_t token) const;

    bool crowded() const { return stacks_.bytes() > roomy || tables_.size() > most_cells / 2; }
    // Forgets all but `state`; its new number. Every other State loses its meaning.
    State keep_only(State state);

private:
    static constexpr State unknown = UINT32_MAX;
    static constexpr std::size_t roomy = 24u << 20;      // bytes
    static constexpr std::size_t most_cells = 8u << 20;  // of all tables, four bytes each

    State compute(State state, std::uint32_t number);
    void remember(State state, std::uint32_t number, State next);
    // Adds what may come first when the elements from `at` on come next and `below` after them. True when all those
    // elements may be empty, so that `below` itself may come first.
    bool enter(std::uint32_t at, StackSet below);
    // What comes after `rule`: the position `next` and `below` under it, or `below` at once where `next` ends.
    void begin_with(std::uint32_t rule, std::uint32_t next, StackSet below);
    bool first_visit(std::uint32_t position, StackSet below) {
        return visited_.insert((static_cast<std::uint64_t>(position) << 32) | below).second;
    }
    void seed_below(StackSet below);
    State close();

    std::shared_ptr<const Program> program_;
    StackSets stacks_;
    std::uint32_t n_classes_;
    std::vector<std::uint32_t> table_of_;  // of a state: 1 + the number of its table; 0: none yet
    std::vector<State> tables_;
    State start_ = dead;

    // One closure's work.
    bool has_empty_ = false;
    std::vector<Top> found_, seeds_;
    std::unordered_set<std::uint64_t> visited_;
    std::unordered_set<StackSet> below_seen_;
    struct After {
        std::vector<Top> tops;
        bool has_empty = false;
    };
    std::vector<After> after_rule_;  // of each rule: what comes after it, not yet put together
    std::priority_queue<std::uint32_t> groups_;
    std::vector<char> group_waits_;
    std::int64_t group_now_ = -1;
};

}  // namespace bankml::grammar
