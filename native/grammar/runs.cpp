#include "grammar/runs.h"

#include <algorithm>
#include <numeric>

namespace bankml::grammar {

Runs::Runs(const Program &program, const Vocabulary &vocabulary) {
    std::vector<std::uint32_t> in_nodes(vocabulary.characters().size(), 0);
    for (const std::uint32_t character : vocabulary.characters()) {
        class_of_.push_back(program.class_of(character));
    }
    const std::span<const Vocabulary::Node> nodes = vocabulary.nodes().first(vocabulary.nodes().size() - 1);
    for (const Vocabulary::Node &node : nodes.subspan(1)) {
        ++in_nodes[node.character];
    }
    // The characters are in order, and so are their classes.
    std::vector<std::uint32_t> place(class_of_.size());
    for (std::size_t i = 0; i < class_of_.size(); ++i) {
        if (present_.empty() || present_.back() != class_of_[i]) {
            present_.push_back(class_of_[i]);
            weight_.push_back(0);
        }
        place[i] = static_cast<std::uint32_t>(present_.size() - 1);
        weight_.back() += in_nodes[i];
    }
    std::vector<std::uint32_t> heaviest(present_.size());
    std::iota(heaviest.begin(), heaviest.end(), 0u);
    std::ranges::sort(heaviest, [&](std::uint32_t a, std::uint32_t b) {
        return weight_[a] != weight_[b] ? weight_[a] > weight_[b] : a < b;
    });
    bit_.resize(present_.size());
    for (std::size_t i = 0; i < heaviest.size(); ++i) {
        bit_[heaviest[i]] = std::uint64_t{1} << std::min<std::size_t>(i, 63);
    }
    below_.assign(nodes.size(), 0);
    // From the last node back, what is below a node is known before the node itself. Its parent is the last one met
    // that is one character shorter, which from the back is still to come: so each node is handed up along a path of
    // depths.
    std::vector<std::uint64_t> waiting(vocabulary.deepest() + 2, 0);
    for (std::size_t at = nodes.size(); at-- > 0;) {
        const Vocabulary::Node &node = nodes[at];
        below_[at] = waiting[node.depth + 1];
        waiting[node.depth + 1] = 0;
        if (at > 0) {
            waiting[node.depth] |= below_[at] | bit_[place[node.character]];
        }
    }
}

void Runs::forget() {
    runs_.clear();
    onward_.clear();
}

// The state that most of the vocabulary's characters lead to, and which those are.
Runs::Onward Runs::onward(Automaton &automaton, State state) {
    if (const auto known = onward_.find(state); known != onward_.end()) {
        return known->second;
    }
    struct Target {
        State state;
        std::uint64_t weight, bits;
    };
    std::vector<Target> targets;
    std::vector<State> next;
    for (std::size_t i = 0; i < present_.size(); ++i) {
        next.push_back(automaton.step(state, present_[i]));
        if (next[i] == Automaton::dead) {
            continue;
        }
        auto target = std::ranges::find(targets, next[i], &Target::state);
        if (target == targets.end()) {
            target = targets.insert(target, {next[i], 0, 0});
        }
        target->weight += weight_[i];
        target->bits |= bit_[i];
    }
    Onward out{0, Automaton::dead};
    if (const auto best = std::ranges::max_element(targets, {}, &Target::weight); best != targets.end()) {
        out = {best->bits, best->state};
        // Classes that share the last bit have to agree.
        for (std::size_t i = 0; i < present_.size(); ++i) {
            if (next[i] != out.next) {
                out.characters &= ~bit_[i];
            }
        }
    }
    onward_.emplace(state, out);
    return out;
}

const Runs::Run &Runs::run_from(Automaton &automaton, State state) {
    if (const auto known = runs_.find(state); known != runs_.end()) {
        return known->second;
    }
    Run run{};
    run[0] = ~std::uint64_t{0};
    State at = state;
    for (std::uint32_t n = 1; n <= longest && run[n - 1] != 0; ++n) {
        const Onward on = onward(automaton, at);
        run[n] = run[n - 1] & on.characters;
        if (on.next == at) {
            std::fill(run.begin() + n, run.end(), run[n]);
            break;
        }
        at = on.next;
    }
    return runs_.emplace(state, run).first->second;
}

}  // namespace bankml::grammar
