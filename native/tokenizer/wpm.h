// WordPiece as llama.cpp does it for `tokenizer.ggml.model` bert.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/special.h"

namespace bankml {

struct WpmVocabulary {
    std::vector<std::string> tokens;  // by id; U+2581 stands before those that begin a word
    std::vector<SpecialRule> rules;   // by id
    bool lower_case, strip_accents;   // what is done to a text first
    std::int32_t unknown;             // for a word that tokens do not spell
};

class Wpm {
public:
    // Throws std::invalid_argument where lengths disagree.
    explicit Wpm(WpmVocabulary vocabulary);
    Wpm(const Wpm &) = delete;
    Wpm &operator=(const Wpm &) = delete;

    // The tokens of `text`, which may be any bytes. Time grows with its length times that of the tokens; safe to call
    // from several threads at once.
    std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const;

private:
    struct Match {
        std::int32_t token;
        std::size_t size;
    };

    void append(std::string_view text, std::vector<std::int32_t> &out) const;
    void append_word(std::string_view word, std::vector<std::int32_t> &out) const;
    Match longest(std::string_view text) const;

    WpmVocabulary vocabulary_;
    std::vector<std::int32_t> sorted_;  // ids by their tokens' bytes
    SpecialTokens plain_, special_;
};

}  // namespace bankml
