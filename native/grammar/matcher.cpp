#include "grammar/matcher.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace bankml::grammar {

namespace {

constexpr std::size_t most_masks = 512;    // 19 KB each at 151,669 tokens
constexpr std::uint32_t worth_a_look = 4;  // nodes: for fewer, going through them is as fast

}  // namespace

Matcher::Matcher(std::shared_ptr<const Program> program, std::shared_ptr<const Vocabulary> vocabulary)
    : vocabulary_(std::move(vocabulary)),
      automaton_(std::move(program)),
      state_(automaton_.start()),
      path_(vocabulary_->deepest() + 1, Automaton::dead) {}

void Matcher::tidy() {
    if (!automaton_.crowded()) {
        return;
    }
    masks_.clear();
    if (runs_) {
        runs_->forget();
    }
    state_ = automaton_.keep_only(state_);
}

State Matcher::follow(State state, const std::vector<std::uint32_t> &characters) {
    for (const std::uint32_t character : characters) {
        if (state == Automaton::dead) {
            break;
        }
        state = step(state, character);
    }
    return state;
}

bool Matcher::allows(std::uint32_t token) {
    if (vocabulary_->ends_generation(token)) {
        return complete();
    }
    const std::string_view piece = vocabulary_->piece(token);
    if (piece.empty()) {
        return false;
    }
    const Decoded decoded = decode(piece, cut_);
    if (decoded.rest.missing < 0) {
        return false;
    }
    const bool by_token = automaton_.program().has_tokens();
    State state = state_;
    for (const std::uint32_t character : decoded.characters) {
        if (character == 0) {
            break;
        }
        // As in llama.cpp, even in the middle of the token: what the grammar names is the token this character is part
        // of.
        if (by_token && automaton_.wants_token(state, token)) {
            return true;
        }
        state = step(state, character);
        if (state == Automaton::dead) {
            return false;
        }
    }
    return decoded.rest.missing == 0 ? state != Automaton::dead : automaton_.may_hold(state, decoded.rest);
}

bool Matcher::accept(std::uint32_t token) {
    tidy();
    if (vocabulary_->ends_generation(token)) {
        return complete();
    }
    const Decoded decoded = decode(vocabulary_->piece(token), cut_);
    const State named = automaton_.program().has_tokens() ? automaton_.step_token(state_, token) : Automaton::dead;
    const State spelled = decoded.characters.empty() ? automaton_.waiting(state_) : follow(state_, decoded.characters);
    state_ = automaton_.unite(named, spelled);
    cut_ = decoded.rest;
    return state_ != Automaton::dead;
}

bool Matcher::accept_text(std::string_view bytes) {
    tidy();
    const Decoded decoded = decode(bytes, cut_);
    state_ = follow(state_, decoded.characters);
    cut_ = decoded.rest;
    return state_ != Automaton::dead;
}

std::size_t Matcher::mask(std::span<const float> logits, std::span<float> out) {
    tidy();
    const Mask &mask = mask_here();
    constexpr float never = -std::numeric_limits<float>::infinity();
    for (std::size_t first = 0; first < logits.size(); first += 64) {
        const std::uint64_t word = mask.bits[first >> 6];
        const std::size_t n = std::min<std::size_t>(64, logits.size() - first);
        if (word == 0) {
            std::fill_n(out.begin() + first, n, never);
            continue;
        }
        for (std::size_t i = 0; i < n; ++i) {
            out[first + i] = (word >> i) & 1 ? logits[first + i] : never;
        }
    }
    return mask.count;
}

const Matcher::Mask &Matcher::mask_here() {
    const std::uint64_t key = (static_cast<std::uint64_t>(state_) << 32) | (cut_.bits << 3) |
                              static_cast<std::uint32_t>(std::max(cut_.missing, 0));
    if (const auto known = masks_.find(key); known != masks_.end()) {
        return known->second;
    }
    if (masks_.size() >= most_masks) {
        masks_.clear();
    }
    Mask mask{std::vector<std::uint64_t>((vocabulary_->n_tokens() + 63) / 64), 0};
    if (complete()) {
        for (const std::uint32_t token : vocabulary_->end_of_generation()) {
            allow(mask, token);
        }
    }
    if (cut_.missing > 0) {
        for (const std::uint32_t token : vocabulary_->continuing()) {
            if (allows(token)) {
                allow(mask, token);
            }
        }
    } else {
        walk(mask);
    }
    for (const std::uint64_t word : mask.bits) {
        mask.count += static_cast<std::size_t>(std::popcount(word));
    }
    return masks_.emplace(key, std::move(mask)).first->second;
}

// Goes through the tree of the vocabulary with the automaton, and leaves out what lies below a dead end.
void Matcher::walk(Mask &mask) {
    const Program &program = automaton_.program();
    const std::span<const Vocabulary::Node> nodes = vocabulary_->nodes();
    const std::span<const std::uint32_t> whole = vocabulary_->whole_tokens();
    if (!runs_) {
        runs_.emplace(program, *vocabulary_);
    }
    const std::span<const std::uint32_t> class_of = runs_->class_of();
    const bool by_token = program.has_tokens();
    const auto last = static_cast<std::uint32_t>(nodes.size() - 1);
    path_[0] = state_;
    allow_cut(mask, 0, state_);
    if (by_token) {
        allow_by_token(mask, 0, state_);
    }
    for (std::uint32_t at = 1; at < last;) {
        const Vocabulary::Node &node = nodes[at];
        const State state = automaton_.step(path_[node.depth - 1], class_of[node.character]);
        if (state == Automaton::dead) {
            at = node.end;
            continue;
        }
        path_[node.depth] = state;
        const Vocabulary::Node &after = nodes[at + 1], &end = nodes[node.end];
        if (node.end - at >= worth_a_look && !by_token && after.cut == end.cut &&
            runs_->passes(automaton_, state, at, node.height)) {
            for (std::uint32_t i = node.whole; i < end.whole; ++i) {
                allow(mask, whole[i]);
            }
            if (node.cut != after.cut) {
                allow_cut(mask, at, state);
            }
            at = node.end;
            continue;
        }
        for (std::uint32_t i = node.whole; i < after.whole; ++i) {
            allow(mask, whole[i]);
        }
        if (node.cut != after.cut) {
            allow_cut(mask, at, state);
        }
        if (by_token) {
            allow_by_token(mask, at, state);
        }
        ++at;
    }
}

void Matcher::allow_cut(Mask &mask, std::uint32_t node, State state) {
    const auto nodes = vocabulary_->nodes();
    const auto cut = vocabulary_->cut_tokens();
    bool holds = false;
    for (std::uint32_t first = nodes[node].cut, i = first; i < nodes[node + 1].cut; ++i) {
        if (i == first || cut[i].rest != cut[i - 1].rest) {
            holds = automaton_.may_hold(state, cut[i].rest);
        }
        if (holds) {
            allow(mask, cut[i].token);
        }
    }
}

// What a token of the grammar lets pass: of the tokens with a further character below `node`, the one it names or all
// others.
void Matcher::allow_by_token(Mask &mask, std::uint32_t node, State state) {
    if (!automaton_.names_tokens(state)) {
        return;
    }
    const auto nodes = vocabulary_->nodes();
    const std::uint32_t after = node + 1, end = nodes[node].end;
    auto consider = [&](std::uint32_t token) {
        if (automaton_.wants_token(state, token)) {
            allow(mask, token);
        }
    };
    for (std::uint32_t i = nodes[after].whole; i < nodes[end].whole; ++i) {
        consider(vocabulary_->whole_tokens()[i]);
    }
    for (std::uint32_t i = nodes[after].cut; i < nodes[end].cut; ++i) {
        consider(vocabulary_->cut_tokens()[i].token);
    }
}

}  // namespace bankml::grammar
