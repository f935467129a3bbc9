#include "tokenizer/pretokenizer.h"

#include <algorithm>

#include "tokenizer/character_sets.h"
#include "tokenizer/span.h"
#include "tokenizer/words.h"

namespace bankml {
namespace {

// A step that finds one regular expression again and again; what lies between two matches is a piece too.
template <std::size_t (*word)(const Span &, std::size_t)>
void each(const Span &span, std::vector<std::size_t> &ends) {
    std::size_t done = span.begin();
    for (std::size_t at = span.begin(); at < span.end();) {
        const std::size_t end = word(span, at);
        if (end == at) {
            ++at;
            continue;
        }
        if (at > done) {
            ends.push_back(at);
        }
        ends.push_back(end);
        at = done = end;
    }
    if (done < span.end()) {
        ends.push_back(span.end());
    }
}

// \p{N}{1,D}
template <std::size_t D>
std::size_t numbers(const Span &span, std::size_t at) {
    std::size_t end = at;
    while (end < at + D && span.number(end)) {
        ++end;
    }
    return end;
}

// \p{N}+
std::size_t all_numbers(const Span &span, std::size_t at) { return span.run(at, Class::number); }

// [0-9][0-9][0-9]
std::size_t three_digits(const Span &span, std::size_t at) {
    const auto digit = [&](std::size_t i) { return span.between(i, U'0', U'9'); };
    return digit(at) && digit(at + 1) && digit(at + 2) ? at + 3 : at;
}

// [\r\n]
std::size_t line_end(const Span &span, std::size_t at) { return span.line_end(at) ? at + 1 : at; }

// [^\n]+|[\n]+
std::size_t line(const Span &span, std::size_t at) {
    const bool newline = span.is(at, U'\n');
    return span.run(at, [&](std::size_t i) { return span.has(i) && span.is(i, U'\n') == newline; });
}

// \s?C+
template <typename Which>
std::size_t spaced(const Span &span, std::size_t at, Which which) {
    const std::size_t body = span.space(at) ? at + 1 : at;
    const std::size_t end = span.run(body, which);
    return end > body ? end : at;
}

// \s?\p{L}+ or the like
template <Class C>
std::size_t spaced_run(const Span &span, std::size_t at) {
    return spaced(span, at, [&](std::size_t i) { return span.is(i, C); });
}

// \s?S+ of a set
template <const auto &Set>
std::size_t spaced_set(const Span &span, std::size_t at) {
    return spaced(span, at, [&](std::size_t i) { return in(Set, span, i); });
}

// S+ of a set
template <const auto &Set>
std::size_t run_of(const Span &span, std::size_t at) {
    return span.run(at, [&](std::size_t i) { return in(Set, span, i); });
}

// S+|T+|… of the sets of youtu
std::size_t cjk_run(const Span &span, std::size_t at) {
    for (const auto run : {run_of<HANGUL>, run_of<CJK_PUNCTUATION>, run_of<BOPOMOFO>, run_of<HAN_AND_KANA>}) {
        if (const std::size_t end = run(span, at); end > at) {
            return end;
        }
    }
    return at;
}

// [\p{P}$+<=>^~|]+ and, with `Backtick`, `
template <bool Backtick>
std::size_t falcon_punctuation(const Span &span, std::size_t at) {
    return span.run(at, [&](std::size_t i) {
        return span.is(i, Class::punctuation) ||
               (span.is(i, Class::symbol) && span[i] < 0x80 && (Backtick || !span.is(i, U'`')));
    });
}

//  ?[^(\s|.,!?…。，、।۔،)]+
std::size_t bloom_word(const Span &span, std::size_t at) {
    const std::size_t body = span.is(at, U' ') ? at + 1 : at;
    const std::size_t end =
        span.run(body, [&](std::size_t i) { return span.has(i) && !span.space(i) && !in(STOPS, span, i); });
    return end > body ? end : at;
}

// Where `text` at `at` ends, or `at`.
std::size_t literal(const Span &span, std::size_t at, std::u32string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!span.is(at + i, text[i])) {
            return at;
        }
    }
    return at + text.size();
}

// <sentinel:[0-9]+>
std::size_t sentinel(const Span &span, std::size_t at) {
    const std::size_t body = literal(span, at, U"<sentinel:");
    if (body == at) {
        return at;
    }
    const std::size_t end = span.run(body, [&](std::size_t i) { return span.between(i, U'0', U'9'); });
    return end > body && span.is(end, U'>') ? end + 1 : at;
}

// IMGIMG[A-I]{1,4}Z
std::size_t image(const Span &span, std::size_t at) {
    const std::size_t body = literal(span, at, U"IMGIMG");
    std::size_t end = body;
    while (end < body + 4 && span.between(end, U'A', U'I')) {
        ++end;
    }
    return body > at && end > body && span.is(end, U'Z') ? end + 1 : at;
}

// [\t\n]|    |  (four spaces, or two)
std::size_t indentation(const Span &span, std::size_t at) {
    if (span.is(at, U'\t') || span.is(at, U'\n')) {
        return at + 1;
    }
    const std::size_t four = literal(span, at, U"    ");
    return four > at ? four : literal(span, at, U"  ");
}

// [\p{P}!-/:-@\[-`{-~]
std::size_t one_punctuation(const Span &span, std::size_t at) {
    const bool found = span.is(at, Class::punctuation) || (span.is(at, Class::symbol) && span[at] < 0x80);
    return found ? at + 1 : at;
}

// \s+$
void trailing_space(const Span &span, std::vector<std::size_t> &ends) {
    std::size_t begin = span.end();
    while (begin > span.begin() && span.space(begin - 1)) {
        --begin;
    }
    if (begin > span.begin() && begin < span.end()) {
        ends.push_back(begin);
    }
    ends.push_back(span.end());
}

// A run of numbers in groups of three, counted from its end; the first group may be shorter.
void thousands(const Span &span, std::vector<std::size_t> &ends) {
    std::size_t done = span.begin();
    for (std::size_t at = span.begin(); at < span.end();) {
        const std::size_t end = span.run(at, Class::number);
        if (end == at) {
            ++at;
            continue;
        }
        if (at > done) {
            ends.push_back(at);
        }
        const std::size_t first = (end - at) % 3;
        for (at = first > 0 ? at + first : at + 3; at <= end; at += 3) {
            ends.push_back(at);
        }
        at = done = end;
    }
    if (done < span.end()) {
        ends.push_back(span.end());
    }
}

// (?=([0-9]{3})+(?![0-9])): cuts before groups of three ASCII digits, and nowhere else.
void before_thousands(const Span &span, std::vector<std::size_t> &ends) {
    for (std::size_t at = span.begin(); at < span.end();) {
        const std::size_t end = span.run(at, [&](std::size_t i) { return span.between(i, U'0', U'9'); });
        for (std::size_t cut = at + (end - at) % 3; cut < end; cut += 3) {
            if (cut > span.begin()) {
                ends.push_back(cut);
            }
        }
        at = std::max(end, at + 1);
    }
    ends.push_back(span.end());
}

// joined_word<3>, but white space without a line end in it is cut as \s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|
// \s{1,2}(?!\S)|\s{1}.
void jais2(const Span &span, std::vector<std::size_t> &ends) {
    static constexpr std::size_t LENGTHS[] = {512, 256, 128, 64, 32, 16, 8, 4, 2, 1};
    for (std::size_t at = span.begin(); at < span.end();) {
        const std::size_t after = span.run(at, Class::space);
        std::size_t end = joined_word<3>(span, at);
        if (end < after || (end == after && !span.has(after) && !span.line_end(end - 1))) {
            // White space alone: up to here, the whole run but for what the text after it takes.
            while (at < end && !span.line_end(end - 1)) {
                for (const std::size_t length : LENGTHS) {
                    if (length <= end - at) {
                        at += length;
                        ends.push_back(at);
                        break;
                    }
                }
            }
        }
        if (end > at) {
            ends.push_back(end);
            at = end;
        }
    }
}

constexpr SplitStep GPT2[] = {each<gpt2_word>};
constexpr SplitStep DIGITS[] = {each<numbers<1>>, each<gpt2_word>};
constexpr SplitStep QWEN2[] = {each<joined_word<1>>};
constexpr SplitStep LLAMA3[] = {each<joined_word<3>>};
constexpr SplitStep TEKKEN[] = {each<cased_word<1>>};
constexpr SplitStep GPT4O[] = {each<cased_word<3>>};
constexpr SplitStep DEFAULT[] = {each<falcon_punctuation<false>>, each<gpt2_word>, each<all_numbers>,
                                 each<three_digits>};
constexpr SplitStep FALCON[] = {each<falcon_punctuation<true>>, each<gpt2_word>, each<three_digits>};
constexpr SplitStep DEEPSEEK_LLM[] = {
    each<line_end>, each<spaced_set<CASED_LETTERS>>, each<spaced_set<WIDE_PUNCTUATION>>,
    trailing_space, each<run_of<EASTERN>>,           each<all_numbers>};
constexpr SplitStep DEEPSEEK_CODER[] = {each<line_end>, each<spaced_run<Class::letter>>,
                                        each<spaced_run<Class::punctuation>>, each<run_of<EASTERN>>, each<numbers<1>>};
constexpr SplitStep DEEPSEEK3[] = {each<numbers<3>>, each<run_of<HAN_AND_KANA>>,
                                   each<deepseek3_word<Lines::after_signs>>};
constexpr SplitStep SPARK[] = {each<numbers<3>>, each<run_of<HAN_AND_KANA>>, each<deepseek3_word<Lines::alone>>,
                               each<numbers<1>>};
constexpr SplitStep AFMOE[] = {thousands, each<run_of<UNSPACED>>, each<deepseek3_word<Lines::after_signs>>};
constexpr SplitStep QWEN35[] = {each<qwen35_word>};
constexpr SplitStep UFAKZEKA[] = {each<joined_word<1, Contractions::no>>};
constexpr SplitStep SEED[] = {each<seed_word>};
constexpr SplitStep MINICPM5[] = {each<numbers<3>>, each<joined_word<3>>};
constexpr SplitStep LAGUNA[] = {each<line>, each<joined_word<1>>};
constexpr SplitStep EXAONE_MOE[] = {each<phrase>};
constexpr SplitStep GRANITE[] = {each<cased_word<3, Marks::yes>>};
constexpr SplitStep TINY_AYA[] = {thousands, each<marked_word<3>>};
constexpr SplitStep YOUTU[] = {each<cjk_run>, each<marked_word<1>>};
constexpr SplitStep KIMI[] = {each<kimi_word>};
constexpr SplitStep SUPERBPE[] = {each<all_numbers>, before_thousands};
constexpr SplitStep CHAMELEON[] = {each<sentinel>,   each<image>,           each<indentation>,
                                   each<numbers<1>>, each<one_punctuation>, each<gpt2_word>};
constexpr SplitStep BLOOM[] = {each<bloom_word>};
constexpr SplitStep VIKING[] = {each<bloom_word>, each<numbers<1>>};
constexpr SplitStep JAIS2[] = {jais2};

}  // namespace

std::optional<Pretokenizer> pretokenizer_named(std::string_view name) {
    struct Named {
        std::string_view name;
        std::span<const SplitStep> steps;
    };
    static constexpr Named ALL[] = {
        {"gpt2", GPT2},
        {"digits", DIGITS},
        {"qwen2", QWEN2},
        {"llama3", LLAMA3},
        {"tekken", TEKKEN},
        {"gpt4o", GPT4O},
        {"default", DEFAULT},
        {"falcon", FALCON},
        {"deepseek-llm", DEEPSEEK_LLM},
        {"deepseek-coder", DEEPSEEK_CODER},
        {"deepseek3", DEEPSEEK3},
        {"spark", SPARK},
        {"afmoe", AFMOE},
        {"qwen35", QWEN35},
        {"ufakzeka", UFAKZEKA},
        {"seed", SEED},
        {"minicpm5", MINICPM5},
        {"laguna", LAGUNA},
        {"exaone-moe", EXAONE_MOE},
        {"granite", GRANITE},
        {"tiny-aya", TINY_AYA},
        {"youtu", YOUTU},
        {"kimi", KIMI},
        {"superbpe", SUPERBPE},
        {"chameleon", CHAMELEON},
        {"bloom", BLOOM},
        {"viking", VIKING},
        {"jais2", JAIS2},
    };
    for (const Named &known : ALL) {
        if (name == known.name) {
            return Pretokenizer{known.steps};
        }
    }
    return std::nullopt;
}

void split_words(Pretokenizer pretokenizer, const std::vector<char32_t> &text, std::vector<std::size_t> &ends) {
    std::vector<std::size_t> pieces, words;
    if (!text.empty()) {
        pieces.push_back(text.size());
    }
    for (const SplitStep step : pretokenizer.steps) {
        words.clear();
        std::size_t begin = 0;
        for (const std::size_t end : pieces) {
            step(Span(text, begin, end), words);
            begin = end;
        }
        pieces.swap(words);
    }
    ends.insert(ends.end(), pieces.begin(), pieces.end());
}

}  // namespace bankml
