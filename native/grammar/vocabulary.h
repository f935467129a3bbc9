// A model's vocabulary as a prefix tree of characters, made once and shared by all grammars.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/utf8.h"

namespace bankml::grammar {

// The nodes are in order of depth first; node 0 is the root. A token stands at the node of its last whole character;
// with bytes of a further one it is among the node's cut tokens. Tokens that no grammar lets pass are nowhere:
// end-of-generation tokens, those without text, those that are no UTF-8.
class Vocabulary {
public:
    struct Node {
        std::uint32_t character;   // index of the character that leads here, in `characters`
        std::uint32_t end;         // the first node that is not below this one
        std::uint16_t depth;       // in characters
        std::uint16_t height;      // of the deepest node below, counted from here
        std::uint32_t whole, cut;  // the first of its tokens among `whole_tokens` and `cut_tokens`
    };
    struct CutToken {
        std::uint32_t token;
        Partial rest;
    };

    // `pieces`: the bytes of each token, control tokens included. std::invalid_argument for an id that is no token, or
    // a token of more than 65,535 characters.
    Vocabulary(std::vector<std::string> pieces, std::span<const std::uint32_t> end_of_generation);

    std::size_t n_tokens() const { return pieces_.size(); }
    std::string_view piece(std::uint32_t token) const { return pieces_[token]; }
    bool ends_generation(std::uint32_t token) const { return ends_[token]; }
    std::span<const std::uint32_t> end_of_generation() const { return end_of_generation_; }

    // One more than there are nodes: the last closes the ranges of tokens.
    std::span<const Node> nodes() const { return nodes_; }
    std::span<const std::uint32_t> characters() const { return characters_; }
    std::span<const std::uint32_t> whole_tokens() const { return whole_; }
    std::span<const CutToken> cut_tokens() const { return cut_; }
    // Tokens that begin with a byte that continues a character.
    std::span<const std::uint32_t> continuing() const { return continuing_; }
    std::uint32_t deepest() const { return nodes_[0].height; }

private:
    struct Spelled;

    void plant(const std::vector<Spelled> &tokens);

    std::vector<std::string> pieces_;
    std::vector<char> ends_;
    std::vector<std::uint32_t> end_of_generation_, characters_, whole_, continuing_;
    std::vector<CutToken> cut_;
    std::vector<Node> nodes_;
};

}  // namespace bankml::grammar
