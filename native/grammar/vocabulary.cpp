#include "grammar/vocabulary.h"

#include <algorithm>
#include <stdexcept>

namespace bankml::grammar {

struct Vocabulary::Spelled {
    std::vector<std::uint32_t> characters;  // as indices
    Partial rest;
    std::uint32_t token;
};

Vocabulary::Vocabulary(std::vector<std::string> pieces, std::span<const std::uint32_t> end_of_generation)
    : pieces_(std::move(pieces)),
      ends_(pieces_.size(), 0),
      end_of_generation_(end_of_generation.begin(), end_of_generation.end()) {
    for (const std::uint32_t token : end_of_generation) {
        if (token >= pieces_.size()) {
            throw std::invalid_argument("an end-of-generation token is not in the vocabulary");
        }
        ends_[token] = 1;
    }
    std::vector<Spelled> tokens;
    for (std::uint32_t token = 0; token < pieces_.size(); ++token) {
        std::string &piece = pieces_[token];
        piece.resize(std::min(piece.size(), piece.find('\0')));
        if (piece.empty() || ends_[token]) {
            continue;
        }
        if ((static_cast<std::uint8_t>(piece[0]) & 0xC0) == 0x80) {
            continuing_.push_back(token);
        }
        Decoded decoded = decode(piece, {});
        if (decoded.rest.missing < 0) {
            continue;
        }
        // A character 0, which only bytes that are no UTF-8 give, ends the text as a NUL does.
        const auto zero = std::find(decoded.characters.begin(), decoded.characters.end(), 0u);
        decoded.characters.erase(zero, decoded.characters.end());
        characters_.insert(characters_.end(), decoded.characters.begin(), decoded.characters.end());
        if (decoded.characters.size() > UINT16_MAX) {
            throw std::invalid_argument("a token is longer than 65,535 characters");
        }
        tokens.push_back({std::move(decoded.characters), decoded.rest, token});
    }
    std::sort(characters_.begin(), characters_.end());
    characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
    for (Spelled &token : tokens) {
        for (std::uint32_t &c : token.characters) {
            c = static_cast<std::uint32_t>(std::lower_bound(characters_.begin(), characters_.end(), c) -
                                           characters_.begin());
        }
    }
    // At one node: whole tokens, then cut ones, those cut alike together.
    std::sort(tokens.begin(), tokens.end(), [](const Spelled &a, const Spelled &b) {
        if (a.characters != b.characters) {
            return a.characters < b.characters;
        }
        if (a.rest.missing != b.rest.missing) {
            return a.rest.missing < b.rest.missing;
        }
        return a.rest.bits != b.rest.bits ? a.rest.bits < b.rest.bits : a.token < b.token;
    });
    plant(tokens);
}

void Vocabulary::plant(const std::vector<Spelled> &tokens) {
    std::vector<std::uint32_t> path{0};  // the nodes from the root to the last one
    nodes_.push_back({});
    auto leave = [&] {
        const std::uint32_t node = path.back();
        path.pop_back();
        nodes_[node].end = static_cast<std::uint32_t>(nodes_.size());
        if (path.empty()) {
            return;
        }
        std::uint16_t &height = nodes_[path.back()].height;
        height = std::max<std::uint16_t>(height, static_cast<std::uint16_t>(nodes_[node].height + 1));
    };
    const std::vector<std::uint32_t> *last = nullptr;
    for (const Spelled &token : tokens) {
        std::size_t common = 0;
        if (last != nullptr) {
            const std::size_t shorter = std::min(last->size(), token.characters.size());
            while (common < shorter && (*last)[common] == token.characters[common]) {
                ++common;
            }
        }
        while (path.size() > common + 1) {
            leave();
        }
        for (std::size_t i = common; i < token.characters.size(); ++i) {
            path.push_back(static_cast<std::uint32_t>(nodes_.size()));
            nodes_.push_back({token.characters[i], 0, static_cast<std::uint16_t>(i + 1), 0,
                              static_cast<std::uint32_t>(whole_.size()), static_cast<std::uint32_t>(cut_.size())});
        }
        if (token.rest.missing == 0) {
            whole_.push_back(token.token);
        } else {
            cut_.push_back({token.token, token.rest});
        }
        last = &token.characters;
    }
    while (!path.empty()) {
        leave();
    }
    const auto n = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({0, n, 0, 0, static_cast<std::uint32_t>(whole_.size()), static_cast<std::uint32_t>(cut_.size())});
}

}  // namespace bankml::grammar
