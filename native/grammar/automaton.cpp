#include "grammar/automaton.h"

#include <algorithm>

namespace bankml::grammar {

Automaton::Automaton(std::shared_ptr<const Program> program)
    : program_(std::move(program)),
      n_classes_(program_->n_classes()),
      after_rule_(program_->n_rules()),
      group_waits_(program_->n_rules(), 0) {
    groups_.push(program_->group(program_->root()));
    group_waits_[program_->group(program_->root())] = 1;
    after_rule_[program_->root()].has_empty = true;
    has_empty_ = program_->nullable(program_->root());
    start_ = close();
}

bool Automaton::names_tokens(State state) const {
    return std::ranges::any_of(tops(state), [&](const Top &top) { return names_token(program_->kind(top.position)); });
}

bool Automaton::may_hold(State state, Partial part) const {
    return std::ranges::any_of(tops(state), [&](const Top &top) {
        return !names_token(program_->kind(top.position)) &&
               program_->set(program_->value(top.position)).may_hold(part);
    });
}

bool Automaton::wants_token(State state, std::uint32_t token) const {
    return std::ranges::any_of(tops(state), [&](const Top &top) {
        const Kind kind = program_->kind(top.position);
        return names_token(kind) && (program_->value(top.position) == token) == (kind == Kind::token);
    });
}

State Automaton::compute(State state, std::uint32_t number) {
    const std::uint32_t character = program_->representative(number);
    const std::span<const Top> here = tops(state);
    const std::vector<Top> held(here.begin(), here.end());
    for (const Top &top : held) {
        if (names_token(program_->kind(top.position)) ||
            !program_->set(program_->value(top.position)).holds(character)) {
            continue;
        }
        seeds_.push_back({program_->next(top.position), top.below});
    }
    const State next = close();
    remember(state, number, next);
    return next;
}

State Automaton::step_token(State state, std::uint32_t token) {
    for (const Top &top : tops(state)) {
        const Kind kind = program_->kind(top.position);
        if (!names_token(kind) || (program_->value(top.position) == token) != (kind == Kind::token)) {
            continue;
        }
        seeds_.push_back({program_->next(top.position), top.below});
    }
    return close();
}

State Automaton::waiting(State state) {
    std::vector<Top> kept;
    for (const Top &top : tops(state)) {
        if (!names_token(program_->kind(top.position))) {
            kept.push_back(top);
        }
    }
    return stacks_.make(kept, false);
}

void Automaton::remember(State state, std::uint32_t number, State next) {
    if (table_of_.size() <= state) {
        table_of_.resize(std::max<std::size_t>(stacks_.n_sets(), state + 1), 0);
    }
    if (table_of_[state] == 0) {
        // When there is no room, the step is computed again each time.
        if (tables_.size() + n_classes_ > most_cells) {
            return;
        }
        tables_.resize(tables_.size() + n_classes_, unknown);
        table_of_[state] = static_cast<std::uint32_t>(tables_.size() / n_classes_);
    }
    tables_[static_cast<std::size_t>(table_of_[state] - 1) * n_classes_ + number] = next;
}

State Automaton::keep_only(State state) {
    table_of_.clear();
    tables_.clear();
    return stacks_.keep_only(state);
}

void Automaton::begin_with(std::uint32_t rule, std::uint32_t next, StackSet below) {
    const std::uint32_t group = program_->group(rule);
    // Within a group nothing follows the rule that is begun with, so what comes after is what came in already.
    if (group_now_ == static_cast<std::int64_t>(group)) {
        return;
    }
    After &after = after_rule_[rule];
    if (!program_->ends(next)) {
        after.tops.push_back({next, below});
    } else {
        const std::span<const Top> tops = stacks_.tops(below);
        after.tops.insert(after.tops.end(), tops.begin(), tops.end());
        after.has_empty = after.has_empty || stacks_.has_empty(below);
    }
    if (!group_waits_[group]) {
        group_waits_[group] = 1;
        groups_.push(group);
    }
}

bool Automaton::enter(std::uint32_t at, StackSet below) {
    while (!program_->ends(at)) {
        if (program_->kind(at) != Kind::rule) {
            found_.push_back({at, below});
            return false;
        }
        const std::uint32_t next = program_->next(at), rule = program_->value(at);
        begin_with(rule, next, below);
        if (!program_->nullable(rule)) {
            return false;
        }
        at = next;
        if (!program_->ends(at) && !first_visit(at, below)) {
            return false;
        }
    }
    return true;
}

void Automaton::seed_below(StackSet below) {
    if (!below_seen_.insert(below).second) {
        return;
    }
    has_empty_ = has_empty_ || stacks_.has_empty(below);
    const std::span<const Top> tops = stacks_.tops(below);
    seeds_.insert(seeds_.end(), tops.begin(), tops.end());
}

// From the seeds and the rules begun with to the state: rules are opened from the highest group down, each once, when
// all that can come after it is known.
State Automaton::close() {
    for (std::size_t i = 0; i < seeds_.size(); ++i) {
        const Top seed = seeds_[i];
        if (!first_visit(seed.position, seed.below)) {
            continue;
        }
        if (enter(seed.position, seed.below)) {
            seed_below(seed.below);
        }
    }
    while (!groups_.empty()) {
        const std::uint32_t group = groups_.top();
        groups_.pop();
        group_now_ = group;
        group_waits_[group] = 0;
        StackSet after = StackSets::none;
        for (const std::uint32_t rule : program_->members(group)) {
            after = stacks_.unite(after, stacks_.make(after_rule_[rule].tops, after_rule_[rule].has_empty));
            after_rule_[rule].tops.clear();
            after_rule_[rule].has_empty = false;
        }
        for (const std::uint32_t rule : program_->members(group)) {
            for (const std::uint32_t at : program_->alternatives(rule)) {
                enter(at, after);
            }
        }
    }
    group_now_ = -1;
    seeds_.clear(), visited_.clear(), below_seen_.clear();
    const bool has_empty = has_empty_;
    has_empty_ = false;
    const State state = stacks_.make(found_, has_empty);
    found_.clear();
    return state;
}

}  // namespace bankml::grammar
