// Byte-level byte-pair encoding as llama.cpp does it for `tokenizer.ggml.model` gpt2.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pretokenizer.h"
#include "tokenizer/special.h"

namespace bankml {

struct Vocabulary {
    std::vector<std::string> tokens;  // by id, as the model file spells them (bytes as printable characters)
    std::vector<SpecialRule> rules;   // by id
    std::vector<std::string> merges;  // "left right", best first
    Pretokenizer pretokenizer;
    bool whole_words = false;  // a word that is a token is that token, whatever the merges make of it
};

class Bpe {
public:
    // Throws std::invalid_argument where lengths disagree or a merge has not two sides.
    explicit Bpe(const Vocabulary &vocabulary);
    ~Bpe();
    Bpe(const Bpe &) = delete;
    Bpe &operator=(const Bpe &) = delete;

    // The tokens of `text`, which may be any bytes. Time grows as n log n; safe to call from several threads at once.
    std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const;

private:
    struct Tables;
    std::unique_ptr<const Tables> tables_;
};

// The name of `names` that a libstdc++ hash table of `tokens`, filled in order, meets first when walked; -1 for none.
// Where a vocabulary has several tokens of one purpose, the reference takes the one this order gives.
int first_in_hash_order(const std::vector<std::string> &tokens, const std::vector<std::string> &names);

}  // namespace bankml
