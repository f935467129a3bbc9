// Byte-pair encoding of characters as llama.cpp does it for `tokenizer.ggml.model` gemma4.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/special.h"

namespace bankml {

struct CharacterVocabulary {
    std::vector<std::string> tokens;  // by id; U+2581 stands for a space
    std::vector<SpecialRule> rules;   // by id
    std::vector<std::string> merges;  // "left right", best first
    bool whole_lines = false;         // a run of line ends that is a token is that token
};

class CharacterBpe {
public:
    // Throws std::invalid_argument where lengths disagree or a merge has not two sides.
    explicit CharacterBpe(const CharacterVocabulary &vocabulary);
    ~CharacterBpe();
    CharacterBpe(const CharacterBpe &) = delete;
    CharacterBpe &operator=(const CharacterBpe &) = delete;

    // The tokens of `text`, which may be any bytes. A character that no token stands for becomes the tokens <0xXX> of
    // its bytes. Time grows as n log n; safe to call from several threads at once.
    std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const;

private:
    struct Tables;
    std::unique_ptr<const Tables> tables_;
};

}  // namespace bankml
