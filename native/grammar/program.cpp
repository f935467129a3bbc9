#include "grammar/program.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "grammar/left_graph.h"

namespace bankml::grammar {

bool CharacterSet::holds(std::uint32_t character) const {
    if (any) {
        return true;
    }
    auto after = std::upper_bound(sorted.begin(), sorted.end(), character,
                                  [](std::uint32_t c, const Range &r) { return c < r.low; });
    const bool found = after != sorted.begin() && character <= std::prev(after)->high;
    return found != negated;
}

bool CharacterSet::may_hold(Partial part) const {
    // No UTF-8, or a 7-bit character spread over two bytes.
    if (part.missing < 0 || (part.missing == 1 && part.bits < 2)) {
        return false;
    }
    if (any) {
        return true;
    }
    const int shift = part.missing * 6;
    std::uint32_t low = part.bits << shift;
    const std::uint32_t high = low | ((1u << shift) - 1);
    if (low == 0 && part.missing == 2) {
        low = 0x800;
    }
    if (low == 0 && part.missing == 3) {
        low = 0x10000;
    }
    const bool meets =
        std::any_of(ranges.begin(), ranges.end(), [&](const Range &r) { return r.low <= high && low <= r.high; });
    return meets != negated;
}

Program::Program(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> values,
                 std::span<const std::uint32_t> starts, std::uint32_t root)
    : starts_(starts.begin(), starts.end()), root_(root) {
    if (kinds.size() != values.size() || kinds.empty() || root >= starts.size()) {
        throw std::invalid_argument("not a grammar's arrays");
    }
    read(kinds, values);
    for (std::size_t rule = 0; rule < starts_.size(); ++rule) {
        first_alternative_.push_back(static_cast<std::uint32_t>(alternatives_.size()));
        if (starts_[rule] >= kinds_.size()) {
            throw std::invalid_argument("a rule starts nowhere");
        }
        empty_alternative_.push_back(0);
        for (std::uint32_t at = starts_[rule];; ++at) {
            alternatives_.push_back(at);
            if (ends(at)) {
                empty_alternative_.back() = 1;
            }
            while (!ends(at)) {
                at = next_[at];
            }
            if (kinds_[at] == Kind::end) {
                break;
            }
        }
    }
    first_alternative_.push_back(static_cast<std::uint32_t>(alternatives_.size()));
    find_nullable();
    find_groups();
    find_classes();
}

void Program::read(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> values) {
    std::map<CharacterSet, std::uint32_t> known;
    if (kinds.back() != static_cast<std::uint8_t>(Kind::end)) {
        throw std::invalid_argument("the last rule has no end");
    }
    kinds_.resize(kinds.size());
    values_.assign(values.begin(), values.end());
    next_.resize(kinds.size());
    for (std::size_t at = 0; at < kinds.size();) {
        if (kinds[at] > static_cast<std::uint8_t>(Kind::not_token)) {
            throw std::invalid_argument("no such kind of element");
        }
        const Kind kind = kinds_[at] = static_cast<Kind>(kinds[at]);
        next_[at] = static_cast<std::uint32_t>(at + 1);
        if (kind == Kind::upper || kind == Kind::also) {
            throw std::invalid_argument("a part of a set stands alone");
        }
        if (kind == Kind::rule && values[at] >= starts_.size()) {
            throw std::invalid_argument("a rule that is not there is named");
        }
        has_tokens_ = has_tokens_ || names_token(kind);
        if (kind == Kind::character || kind == Kind::not_character || kind == Kind::any) {
            CharacterSet set;
            next_[at] = read_set(kinds, values, at, set);
            const auto [place, added] = known.try_emplace(set, static_cast<std::uint32_t>(sets_.size()));
            if (added) {
                sets_.push_back(set);
            }
            values_[at] = place->second;
        }
        at = next_[at];
    }
}

// Reads the set that begins at `at`; the position after it.
std::uint32_t Program::read_set(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> values,
                                std::size_t at, CharacterSet &set) {
    set.any = kinds[at] == static_cast<std::uint8_t>(Kind::any);
    set.negated = kinds[at] == static_cast<std::uint8_t>(Kind::not_character);
    do {
        kinds_[at] = static_cast<Kind>(kinds[at]);
        Range range{values[at], values[at]};
        if (at + 1 < kinds.size() && kinds[at + 1] == static_cast<std::uint8_t>(Kind::upper)) {
            range.high = values[++at];
            kinds_[at] = Kind::upper;
        }
        set.ranges.push_back(range);
        ++at;
    } while (at < kinds.size() && kinds[at] == static_cast<std::uint8_t>(Kind::also));
    for (const Range &range : set.ranges) {
        if (range.low <= range.high) {
            set.sorted.push_back(range);
        }
    }
    std::sort(set.sorted.begin(), set.sorted.end());
    std::size_t kept = 0;
    for (const Range &range : set.sorted) {
        if (kept != 0 && range.low <= set.sorted[kept - 1].high) {
            set.sorted[kept - 1].high = std::max(set.sorted[kept - 1].high, range.high);
        } else {
            set.sorted[kept++] = range;
        }
    }
    set.sorted.resize(kept);
    return static_cast<std::uint32_t>(at);
}

// A rule is nullable when an alternative has nothing but nullable rules in it. Each alternative counts those it waits
// for.
void Program::find_nullable() {
    nullable_.assign(n_rules(), 0);
    std::vector<std::vector<std::uint32_t>> waiting(n_rules());
    std::vector<std::uint32_t> count(alternatives_.size()), owner(alternatives_.size()), found;
    auto set_nullable = [&](std::uint32_t rule) {
        if (nullable_[rule]) {
            return;
        }
        nullable_[rule] = 1;
        found.push_back(rule);
    };
    for (std::uint32_t rule = 0; rule < n_rules(); ++rule) {
        for (std::uint32_t i = first_alternative_[rule]; i < first_alternative_[rule + 1]; ++i) {
            owner[i] = rule;
            std::uint32_t at = alternatives_[i];
            while (kinds_[at] == Kind::rule) {
                at = next_[at];
            }
            if (!ends(at)) {
                continue;
            }
            for (at = alternatives_[i]; !ends(at); at = next_[at]) {
                waiting[values_[at]].push_back(i);
                ++count[i];
            }
            if (count[i] == 0) {
                set_nullable(rule);
            }
        }
    }
    while (!found.empty()) {
        const std::uint32_t rule = found.back();
        found.pop_back();
        for (const std::uint32_t i : waiting[rule]) {
            if (--count[i] == 0) {
                set_nullable(owner[i]);
            }
        }
    }
}

// llama.cpp refuses a rule that begins with itself where what precedes has an empty alternative of its own. What it
// does not see is a precedent that is empty through another rule. Such a rule is harmless when nothing follows the
// recursion; where something does, the stack would grow for ever.
void Program::find_groups() {
    Edges all, seen_by_llama;
    std::vector<char> grows;
    for (std::uint32_t rule = 0; rule < n_rules(); ++rule) {
        all.first.push_back(static_cast<std::uint32_t>(all.to.size()));
        seen_by_llama.first.push_back(static_cast<std::uint32_t>(seen_by_llama.to.size()));
        for (std::uint32_t at : alternatives(rule)) {
            bool seen = true;
            for (; kinds_[at] == Kind::rule; at = next_[at]) {
                const std::uint32_t to = values_[at];
                all.to.push_back(to);
                grows.push_back(!ends(next_[at]));
                if (seen) {
                    seen_by_llama.to.push_back(to);
                }
                seen = seen && empty_alternative_[to];
                if (!nullable_[to]) {
                    break;
                }
            }
        }
    }
    all.first.push_back(static_cast<std::uint32_t>(all.to.size()));
    seen_by_llama.first.push_back(static_cast<std::uint32_t>(seen_by_llama.to.size()));
    const Components refused = components(seen_by_llama), groups = components(all);
    auto find = [&](const Edges &edges, const Components &parts, bool growing_only) {
        for (std::uint32_t rule = 0; rule < n_rules() && left_recursive_ < 0; ++rule) {
            for (std::uint32_t e = edges.first[rule]; e < edges.first[rule + 1]; ++e) {
                if (parts.of[edges.to[e]] == parts.of[rule] && (!growing_only || grows[e])) {
                    left_recursive_ = rule;
                }
            }
        }
    };
    find(seen_by_llama, refused, false);
    find(all, groups, true);
    group_ = groups.of;
    first_member_.assign(groups.count + 1, 0);
    for (const std::uint32_t g : group_) {
        ++first_member_[g + 1];
    }
    for (std::size_t g = 0; g < groups.count; ++g) {
        first_member_[g + 1] += first_member_[g];
    }
    members_.resize(n_rules());
    std::vector<std::uint32_t> place(first_member_.begin(), first_member_.end() - 1);
    for (std::uint32_t rule = 0; rule < n_rules(); ++rule) {
        members_[place[group_[rule]]++] = rule;
    }
}

void Program::find_classes() {
    class_low_.push_back(0);
    for (const CharacterSet &set : sets_) {
        for (const Range &range : set.sorted) {
            class_low_.push_back(range.low);
            if (range.high != UINT32_MAX) {
                class_low_.push_back(range.high + 1);
            }
        }
    }
    std::sort(class_low_.begin(), class_low_.end());
    class_low_.erase(std::unique(class_low_.begin(), class_low_.end()), class_low_.end());
}

std::uint32_t Program::class_of(std::uint32_t character) const {
    return static_cast<std::uint32_t>(std::upper_bound(class_low_.begin(), class_low_.end(), character) -
                                      class_low_.begin()) -
           1;
}

}  // namespace bankml::grammar
