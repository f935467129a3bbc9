// SentencePiece's scored merges as llama.cpp does them for `tokenizer.ggml.model` llama.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/special.h"

namespace bankml {

struct SpmVocabulary {
    std::vector<std::string> tokens;  // by id; U+2581 stands for a space
    std::vector<SpecialRule> rules;   // by id
    std::vector<float> scores;        // by id
    bool space_prefix;                // a text begins with a space, again after each special token
    std::int32_t unknown;             // for a byte that no token stands for; -1: none does
};

class Spm {
public:
    // Throws std::invalid_argument where lengths disagree.
    explicit Spm(SpmVocabulary vocabulary);
    Spm(const Spm &) = delete;
    Spm &operator=(const Spm &) = delete;

    // The tokens of `text`, which may be any bytes. Time grows as n log n; safe to call from several threads at once.
    std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const;

private:
    void append(std::string_view text, std::vector<std::int32_t> &out) const;

    SpmVocabulary vocabulary_;
    std::unordered_map<std::string_view, std::int32_t> ids_;  // into vocabulary_.tokens
    std::array<std::int32_t, 256> bytes_{};
    SpecialTokens plain_, special_;
};

}  // namespace bankml
