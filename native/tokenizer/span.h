// A stretch of text, and the questions that pre-tokenizers ask of it.
#pragma once
#include <vector>

#include "tokenizer/unicode.h"

namespace bankml {

using unicode::Class;

// What lies outside a span does not exist, so a look past its end finds nothing. No run of characters reaches over it.
class Span {
public:
    Span(const std::vector<char32_t> &text, std::size_t begin, std::size_t end)
        : text_(text), begin_(begin), end_(end) {}

    std::size_t begin() const { return begin_; }
    std::size_t end() const { return end_; }
    bool has(std::size_t at) const { return at < end_; }
    char32_t operator[](std::size_t at) const { return has(at) ? text_[at] : NOTHING; }
    bool is(std::size_t at, char32_t c) const { return has(at) && text_[at] == c; }
    bool is(std::size_t at, Class c) const { return has(at) && unicode::class_of(text_[at]) == c; }
    bool between(std::size_t at, char32_t first, char32_t last) const {
        return has(at) && text_[at] >= first && text_[at] <= last;
    }
    bool line_end(std::size_t at) const { return is(at, U'\r') || is(at, U'\n'); }
    bool space(std::size_t at) const { return is(at, Class::space); }
    bool letter(std::size_t at) const { return is(at, Class::letter); }
    bool number(std::size_t at) const { return is(at, Class::number); }
    // [\p{L}\p{M}]
    bool letter_or_mark(std::size_t at) const { return letter(at) || is(at, Class::mark); }
    // [\p{P}\p{S}]
    bool punctuation_or_symbol(std::size_t at) const { return is(at, Class::punctuation) || is(at, Class::symbol); }
    // [^\s\p{L}\p{N}]
    bool sign(std::size_t at) const { return has(at) && !space(at) && !letter(at) && !number(at); }
    // [^\r\n\p{L}\p{N}]
    bool prefix(std::size_t at) const { return has(at) && !line_end(at) && !letter(at) && !number(at); }

    // Where the run of characters that are `which` and that begins at `at` ends.
    template <typename Which>
    std::size_t run(std::size_t at, Which which) const {
        while (which(at)) {
            ++at;
        }
        return at;
    }
    std::size_t run(std::size_t at, Class c) const {
        return run(at, [&](std::size_t i) { return is(i, c); });
    }
    std::size_t run(std::size_t at, bool (Span::*which)(std::size_t) const) const {
        return run(at, [&](std::size_t i) { return (this->*which)(i); });
    }

    // The length of 's 't 'm 'd 're 've 'll at `at`, or 0; the letters in either case where `any_case`.
    std::size_t contraction(std::size_t at, bool any_case) const {
        if (!is(at, U'\'')) {
            return 0;
        }
        const auto letter = [&](std::size_t i) -> char32_t {
            if (!has(i)) {
                return 0;
            }
            return any_case && text_[i] >= U'A' && text_[i] <= U'Z' ? text_[i] + 32 : text_[i];
        };
        const char32_t first = letter(at + 1), second = letter(at + 2);
        if (first == U's' || first == U't' || first == U'm' || first == U'd') {
            return 2;
        }
        const bool pair =
            (first == U'r' && second == U'e') || (first == U'v' && second == U'e') || (first == U'l' && second == U'l');
        return pair ? 3 : 0;
    }

    // Where white space at `at` ends as a word: a run followed by more text leaves its last character to what follows.
    std::size_t white_space(std::size_t at) const {
        const std::size_t after = run(at, Class::space);
        return after - at > 1 && has(after) ? after - 1 : after;
    }

private:
    static constexpr char32_t NOTHING = 0xFFFFFFFF;
    const std::vector<char32_t> &text_;
    std::size_t begin_, end_;
};

}  // namespace bankml
