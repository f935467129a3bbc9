#include "tokenizer/pretokenizer.h"

#include <utility>

#include "tokenizer/unicode.h"

namespace bankml {
namespace {

using unicode::Class;

// A stretch of text; what lies outside it does not exist, so a look past its end finds nothing.
class Span {
public:
    Span(const std::vector<char32_t> &text, std::size_t begin, std::size_t end)
        : text_(text), begin_(begin), end_(end) {}

    std::size_t begin() const { return begin_; }
    std::size_t end() const { return end_; }
    bool has(std::size_t at) const { return at < end_; }
    bool is(std::size_t at, char32_t c) const { return has(at) && text_[at] == c; }
    bool is(std::size_t at, Class c) const { return has(at) && unicode::class_of(text_[at]) == c; }
    bool between(std::size_t at, char32_t first, char32_t last) const {
        return has(at) && text_[at] >= first && text_[at] <= last;
    }
    bool line_end(std::size_t at) const { return is(at, U'\r') || is(at, U'\n'); }

    // Where the run of class `c` that begins at `at` ends.
    std::size_t run(std::size_t at, Class c) const {
        while (is(at, c)) {
            ++at;
        }
        return at;
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
    const std::vector<char32_t> &text_;
    std::size_t begin_, end_;
};

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word(const Span &span, std::size_t at) {
    if (const std::size_t length = span.contraction(at, false)) {
        return at + length;
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    for (const Class c : {Class::letter, Class::number, Class::other}) {
        if (span.is(body, c)) {
            return span.run(body, c);
        }
    }
    return span.white_space(at);
}

// \p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ and, with `slash`, [\r\n/]*.
template <std::size_t D>
std::size_t other_word(const Span &span, std::size_t at, bool slash) {
    if (span.is(at, Class::number)) {
        std::size_t end = at + 1;  // not the end of the run: it may be as long as the text
        while (end < at + D && span.is(end, Class::number)) {
            ++end;
        }
        return end;
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    if (span.is(body, Class::other)) {
        std::size_t end = span.run(body, Class::other);
        while (span.line_end(end) || (slash && span.is(end, U'/'))) {
            ++end;
        }
        return end;
    }
    for (std::size_t last = span.run(at, Class::space); last > at; --last) {
        if (span.line_end(last - 1)) {
            return last;
        }
    }
    return span.white_space(at);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <std::size_t D>
std::size_t joined_word(const Span &span, std::size_t at) {
    if (const std::size_t length = span.contraction(at, true)) {
        return at + length;
    }
    if (span.is(at, Class::letter) ||
        (!span.line_end(at) && !span.is(at, Class::number) && span.is(at + 1, Class::letter))) {
        return span.run(at + 1, Class::letter);
    }
    return other_word<D>(span, at, false);
}

// [^\r\n\p{L}\p{N}]?U*W+|[^\r\n\p{L}\p{N}]?U+W*|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
// U is a letter but a-z and W a letter but A-Z, since the reference knows the case of ASCII alone: any other letter is
// both. A contraction may follow a word where D is 3.
template <std::size_t D>
std::size_t cased_word(const Span &span, std::size_t at) {
    const auto upper = [&](std::size_t i) { return span.is(i, Class::letter) && !span.between(i, U'a', U'z'); };
    const auto lower = [&](std::size_t i) { return span.is(i, Class::letter) && !span.between(i, U'A', U'Z'); };
    const bool prefix = !span.is(at, Class::letter) && !span.is(at, Class::number) && !span.line_end(at);
    const std::size_t body = prefix ? at + 1 : at;
    if (span.is(body, Class::letter)) {
        std::size_t end = body;
        while (upper(end)) {
            ++end;
        }
        if (lower(end)) {
            while (lower(end)) {
                ++end;
            }
        } else {  // the last letter that is both ends the word, if there is one
            std::size_t last = end;
            while (last > body && !lower(last - 1)) {
                --last;
            }
            end = last > body ? last : end;
        }
        return D == 3 ? end + span.contraction(end, true) : end;
    }
    return other_word<D>(span, at, true);
}

template <typename Word>
void split_span(const Span &span, Word word, std::vector<std::size_t> &ends) {
    for (std::size_t at = span.begin(); at < span.end();) {
        at = word(span, at);
        ends.push_back(at);
    }
}

// Every number is cut out as a word by itself before the rest is split; the rest does not see past it.
void split_digits(const std::vector<char32_t> &text, std::vector<std::size_t> &ends) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (unicode::class_of(text[at]) != Class::number) {
            continue;
        }
        split_span(Span(text, begin, at), gpt2_word, ends);
        ends.push_back(at + 1);
        begin = at + 1;
    }
    split_span(Span(text, begin, text.size()), gpt2_word, ends);
}

}  // namespace

std::optional<Pretokenizer> pretokenizer_named(std::string_view name) {
    static constexpr std::pair<std::string_view, Pretokenizer> NAMES[] = {
        {"gpt2", Pretokenizer::gpt2},     {"digits", Pretokenizer::digits}, {"qwen2", Pretokenizer::qwen2},
        {"llama3", Pretokenizer::llama3}, {"tekken", Pretokenizer::tekken}, {"gpt4o", Pretokenizer::gpt4o},
    };
    for (const auto &[known, kind] : NAMES) {
        if (name == known) {
            return kind;
        }
    }
    return std::nullopt;
}

void split_words(Pretokenizer kind, const std::vector<char32_t> &text, std::vector<std::size_t> &ends) {
    const Span all(text, 0, text.size());
    switch (kind) {
        case Pretokenizer::gpt2: return split_span(all, gpt2_word, ends);
        case Pretokenizer::digits: return split_digits(text, ends);
        case Pretokenizer::qwen2: return split_span(all, joined_word<1>, ends);
        case Pretokenizer::llama3: return split_span(all, joined_word<3>, ends);
        case Pretokenizer::tekken: return split_span(all, cased_word<1>, ends);
        case Pretokenizer::gpt4o: return split_span(all, cased_word<3>, ends);
    }
}

}  // namespace bankml
