// One answer held to a grammar: which tokens may come next, over a whole vocabulary at once.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/runs.h"
#include "grammar/vocabulary.h"

namespace bankml::grammar {

// Every member but the constructor may throw std::length_error (see Automaton). For one thread at a time.
class Matcher {
public:
    Matcher(std::shared_ptr<const Program> program, std::shared_ptr<const Vocabulary> vocabulary);

    const Vocabulary &vocabulary() const { return *vocabulary_; }
    bool complete() const { return automaton_.complete(state_); }
    bool allows(std::uint32_t token);
    // What is allowed of `logits` to `out`, the rest as -inf; both [n_tokens]. The number of tokens that are allowed.
    std::size_t mask(std::span<const float> logits, std::span<float> out);
    // Takes the token into the text; false, and no state is left, when the grammar has no way on.
    bool accept(std::uint32_t token);
    // The same for a text that no token of the grammar stands for.
    bool accept_text(std::string_view bytes);

private:
    struct Mask {
        std::vector<std::uint64_t> bits;
        std::size_t count = 0;
    };

    void tidy();
    const Mask &mask_here();
    void walk(Mask &mask);
    void allow_cut(Mask &mask, std::uint32_t node, State state);
    void allow_by_token(Mask &mask, std::uint32_t node, State state);
    State step(State state, std::uint32_t character) {
        return automaton_.step(state, automaton_.program().class_of(character));
    }
    State follow(State state, const std::vector<std::uint32_t> &characters);
    static void allow(Mask &mask, std::uint32_t token) { mask.bits[token >> 6] |= std::uint64_t{1} << (token & 63); }

    std::shared_ptr<const Vocabulary> vocabulary_;
    Automaton automaton_;
    State state_;
    Partial cut_;               // the character that the text so far ends in
    std::optional<Runs> runs_;  // made for the first mask
    std::vector<State> path_;
    std::unordered_map<std::uint64_t, Mask> masks_;
};

}  // namespace bankml::grammar
