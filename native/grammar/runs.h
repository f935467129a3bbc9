// A shortcut through the vocabulary's tree. In the middle of a string, say, nearly every character leads on to one
// state, from there to one other (or the same), and so on: whatever is spelled with such characters alone passes, whole
// subtrees at once.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/vocabulary.h"

namespace bankml::grammar {

// Sets of characters are 64 bits here: a bit for each of the classes with the most tokens, the last bit for all others.
class Runs {
public:
    Runs(const Program &program, const Vocabulary &vocabulary);

    // The class of each of the vocabulary's characters.
    std::span<const std::uint32_t> class_of() const { return class_of_; }
    // Whether all that is below `node` can be spelled from `state` on. False may also mean that it was not found out.
    bool passes(Automaton &automaton, State state, std::uint32_t node, std::uint32_t height) {
        if (below_[node] == 0) {
            return true;
        }
        if (present_.size() > most_classes) {
            return false;
        }
        return (below_[node] & ~run_from(automaton, state)[std::min(height, longest + 1)]) == 0;
    }
    // States have lost their meaning.
    void forget();

private:
    static constexpr std::uint32_t longest = 14;
    static constexpr std::size_t most_classes = 256;  // of those that the vocabulary has

    // What may be spelled with: [n] in up to n characters, [longest + 1] in any number.
    using Run = std::array<std::uint64_t, longest + 2>;
    struct Onward {
        std::uint64_t characters;
        State next;
    };

    const Run &run_from(Automaton &automaton, State state);
    Onward onward(Automaton &automaton, State state);

    std::vector<std::uint32_t> class_of_;
    std::vector<std::uint32_t> present_, weight_;  // the classes that the vocabulary has; in how many nodes each
    std::vector<std::uint64_t> bit_;               // of each of those
    std::vector<std::uint64_t> below_;             // of each node: the characters that lead on from it or from below it
    std::unordered_map<State, Run> runs_;
    std::unordered_map<State, Onward> onward_;
};

}  // namespace bankml::grammar
