#include "tokenizer/words.h"

#include "tokenizer/character_sets.h"

namespace bankml {
namespace {

// \p{N}{1,D}
template <std::size_t D>
std::size_t some_numbers(const Span &span, std::size_t at) {
    std::size_t end = at;  // not the end of the run: it may be as long as the text
    while (end < at + D && span.number(end)) {
        ++end;
    }
    return end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t blank(const Span &span, std::size_t at) {
    for (std::size_t last = span.run(at, Class::space); last > at; --last) {
        if (span.line_end(last - 1)) {
            return last;
        }
    }
    return span.white_space(at);
}

// \p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ and, with `slash`, [\r\n/]*.
template <std::size_t D>
std::size_t other_word(const Span &span, std::size_t at, bool slash) {
    if (span.number(at)) {
        return some_numbers<D>(span, at);
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    if (span.sign(body)) {
        return span.run(span.run(body, &Span::sign),
                        [&](std::size_t i) { return span.line_end(i) || (slash && span.is(i, U'/')); });
    }
    return blank(span, at);
}

// [^\r\n\p{L}\p{N}]?\p{L}+
std::size_t prefixed_letters(const Span &span, std::size_t at) {
    if (span.letter(at) || (span.prefix(at) && span.letter(at + 1))) {
        return span.run(at + 1, Class::letter);
    }
    return at;
}

// [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+
std::size_t prefixed_marked_letters(const Span &span, std::size_t at) {
    if (span.letter_or_mark(at) || (span.prefix(at) && span.letter_or_mark(at + 1))) {
        return span.run(at + 1, &Span::letter_or_mark);
    }
    return at;
}

bool ascii_letter(const Span &span, std::size_t at) {
    return span.between(at, U'a', U'z') || span.between(at, U'A', U'Z');
}

bool ascii_punctuation(const Span &span, std::size_t at) {
    return span.between(at, U'!', U'~') && !ascii_letter(span, at) && !span.between(at, U'0', U'9');
}

}  // namespace

std::size_t gpt2_word(const Span &span, std::size_t at) {
    if (const std::size_t length = span.contraction(at, false)) {
        return at + length;
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    for (const auto which : {&Span::letter, &Span::number, &Span::sign}) {
        if ((span.*which)(body)) {
            return span.run(body, which);
        }
    }
    return span.white_space(at);
}

template <std::size_t D, Contractions C>
std::size_t joined_word(const Span &span, std::size_t at) {
    if (const std::size_t length = C == Contractions::yes ? span.contraction(at, true) : 0) {
        return at + length;
    }
    const std::size_t letters = prefixed_letters(span, at);
    return letters > at ? letters : other_word<D>(span, at, false);
}

template std::size_t joined_word<1>(const Span &, std::size_t);
template std::size_t joined_word<3>(const Span &, std::size_t);
template std::size_t joined_word<1, Contractions::no>(const Span &, std::size_t);

std::size_t qwen35_word(const Span &span, std::size_t at) {
    if (const std::size_t length = span.contraction(at, true)) {
        return at + length;
    }
    const std::size_t letters = prefixed_marked_letters(span, at);
    if (letters > at) {
        return letters;
    }
    if (span.number(at)) {
        return at + 1;
    }
    const auto sign = [&](std::size_t i) { return span.sign(i) && !span.is(i, Class::mark); };
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    return sign(body) ? span.run(span.run(body, sign), &Span::line_end) : blank(span, at);
}

std::size_t seed_word(const Span &span, std::size_t at) {
    if (const std::size_t length = span.contraction(at, true)) {
        return at + length;
    }
    const std::size_t letters = prefixed_letters(span, at);
    if (letters > at) {
        return letters;
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    return span.sign(body) ? span.run(body, &Span::sign) : other_word<1>(span, at, false);
}

std::size_t phrase(const Span &span, std::size_t at) {
    if (const std::size_t length = span.contraction(at, true)) {
        return at + length;
    }
    if (span.letter(at) || (span.prefix(at) && span.letter(at + 1))) {
        std::size_t end = span.letter(at) ? at : at + 1;
        while (span.letter(end) || (span.is(end, U' ') && span.letter(end + 1))) {
            end = span.run(span.letter(end) ? end + 1 : end + 2, Class::mark);
        }
        return end;
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    if (span.sign(body)) {
        const std::size_t end = span.run(body, &Span::sign);
        return span.line_end(end) || span.is(end, U'/') ? end + 1 : end;
    }
    return other_word<1>(span, at, false);
}

template <std::size_t D, Marks M>
std::size_t cased_word(const Span &span, std::size_t at) {
    const auto cased = [&](std::size_t i) { return M == Marks::yes ? span.letter_or_mark(i) : span.letter(i); };
    const auto upper = [&](std::size_t i) { return cased(i) && !span.between(i, U'a', U'z'); };
    const auto lower = [&](std::size_t i) { return cased(i) && !span.between(i, U'A', U'Z'); };
    // U*W+
    const auto lower_end = [&](std::size_t body) {
        std::size_t end = span.run(body, upper);
        if (lower(end)) {
            return span.run(end, lower);
        }
        while (end > body && !lower(end - 1)) {  // the last letter that is both ends the word, if there is one
            --end;
        }
        return end;
    };
    // U+W*
    const auto upper_end = [&](std::size_t body) {
        return upper(body) ? span.run(span.run(body, upper), lower) : body;
    };
    const std::size_t after = span.prefix(at) ? at + 1 : at;  // a prefix is taken where the word can do with it
    std::size_t end = lower_end(after);
    if (end == after && lower_end(at) > at) {
        end = lower_end(at);
    } else if (end == after) {
        end = upper_end(after);
        end = end == after ? upper_end(at) : end;
    }
    if (end > at) {
        return D == 3 ? end + span.contraction(end, true) : end;
    }
    return other_word<D>(span, at, true);
}

template std::size_t cased_word<1>(const Span &, std::size_t);
template std::size_t cased_word<3>(const Span &, std::size_t);
template std::size_t cased_word<3, Marks::yes>(const Span &, std::size_t);

template <std::size_t D>
std::size_t marked_word(const Span &span, std::size_t at) {
    const std::size_t end = prefixed_marked_letters(span, at);
    return end > at ? end + span.contraction(end, true) : other_word<D>(span, at, true);
}

template std::size_t marked_word<1>(const Span &, std::size_t);
template std::size_t marked_word<3>(const Span &, std::size_t);

std::size_t kimi_word(const Span &span, std::size_t at) {
    const auto han = [&](std::size_t i) { return in(HAN, span, i); };
    const auto letter = [&](std::size_t i) { return span.letter(i) && !han(i); };
    if (han(at)) {
        return span.run(at, han);
    }
    if (letter(at) || (span.prefix(at) && letter(at + 1))) {
        const std::size_t end = span.run(at + 1, letter);
        return end + span.contraction(end, true);
    }
    return other_word<3>(span, at, false);
}

template <Lines L>
std::size_t deepseek3_word(const Span &span, std::size_t at) {
    const auto ascii = [&](std::size_t i) { return ascii_letter(span, i); };
    if (ascii_punctuation(span, at) && ascii(at + 1)) {
        return span.run(at + 1, ascii);
    }
    const bool prefix = span.has(at) && !span.line_end(at) && !span.letter(at) && !span.punctuation_or_symbol(at);
    if (span.letter_or_mark(at) || (prefix && span.letter_or_mark(at + 1))) {
        return span.run(at + 1, &Span::letter_or_mark);
    }
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    if (span.punctuation_or_symbol(body)) {
        const std::size_t end = span.run(body, &Span::punctuation_or_symbol);
        return L == Lines::alone ? end : span.run(end, &Span::line_end);
    }
    if (L == Lines::alone) {
        return span.line_end(at) ? at + 1 : span.white_space(at);
    }
    return blank(span, at);
}

template std::size_t deepseek3_word<Lines::after_signs>(const Span &, std::size_t);
template std::size_t deepseek3_word<Lines::alone>(const Span &, std::size_t);

}  // namespace bankml
