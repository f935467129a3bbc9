#include "tokenizer/wpm.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "tokenizer/unicode.h"

namespace bankml {
namespace {

using unicode::Class;

constexpr std::string_view WORD_BEGIN = "\xe2\x96\x81";

// The blocks of ideographs, each of which is a word. Extension E begins at U+2B920 in the reference, not at U+2B820.
bool is_ideograph(char32_t c) {
    static constexpr char32_t BLOCKS[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                             {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                             {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    return std::any_of(std::begin(BLOCKS), std::end(BLOCKS),
                       [&](const auto &block) { return c >= block[0] && c <= block[1]; });
}

bool is_word(char32_t c, Class kind) {
    return kind == Class::punctuation || (kind == Class::symbol && c < 0x7F) || is_ideograph(c);
}

}  // namespace

Wpm::Wpm(WpmVocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      sorted_(vocabulary_.tokens.size()),
      plain_(vocabulary_.tokens, vocabulary_.rules, false),
      special_(vocabulary_.tokens, vocabulary_.rules, true) {
    if (vocabulary_.rules.size() != vocabulary_.tokens.size()) {
        throw std::invalid_argument("as many rules as tokens are needed");
    }
    std::iota(sorted_.begin(), sorted_.end(), 0);
    std::sort(sorted_.begin(), sorted_.end(), [this](std::int32_t left, std::int32_t right) {
        return vocabulary_.tokens[left] < vocabulary_.tokens[right];
    });
}

// Narrows the sorted tokens down to those that begin as `text` does, byte by byte. The shortest of them is the first.
Wpm::Match Wpm::longest(std::string_view text) const {
    Match found{-1, 0};
    auto first = sorted_.begin(), last = sorted_.end();
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const auto byte_at = [&](std::int32_t id) {
            const std::string &token = vocabulary_.tokens[id];
            return token.size() > at ? static_cast<unsigned char>(token[at]) : -1;
        };
        first = std::partition_point(first, last, [&](std::int32_t id) { return byte_at(id) < byte; });
        last = std::partition_point(first, last, [&](std::int32_t id) { return byte_at(id) == byte; });
        if (first == last) {
            break;
        }
        if (vocabulary_.tokens[*first].size() == at + 1) {
            found = {*first, at + 1};
        }
    }
    return found;
}

void Wpm::append_word(std::string_view word, std::vector<std::int32_t> &out) const {
    const std::size_t before = out.size();
    for (std::size_t at = 0; at < word.size();) {
        const Match match = longest(word.substr(at));
        if (match.token < 0) {
            out.resize(before);
            out.push_back(vocabulary_.unknown);
            return;
        }
        out.push_back(match.token);
        at += match.size;
    }
}

void Wpm::append(std::string_view text, std::vector<std::int32_t> &out) const {
    std::vector<char32_t> code_points;
    unicode::decode(text, code_points);
    std::string word(WORD_BEGIN);
    const auto end_word = [&] {
        if (word.size() > WORD_BEGIN.size()) {
            append_word(word, out);
            word.resize(WORD_BEGIN.size());
        }
    };
    for (char32_t c : code_points) {
        c = vocabulary_.strip_accents ? unicode::base_of(c) : c;
        const Class kind = unicode::class_of(c);
        if (kind == Class::space) {
            end_word();
        }
        if (kind == Class::space || kind == Class::control || c == unicode::REPLACEMENT ||
            (kind == Class::mark && vocabulary_.strip_accents)) {
            continue;
        }
        const bool alone = is_word(c, kind);
        if (alone) {
            end_word();
        }
        unicode::append_utf8(vocabulary_.lower_case ? unicode::lower_case(c) : c, word);
        if (alone) {
            end_word();
        }
    }
    end_word();
}

std::vector<std::int32_t> Wpm::encode(std::string_view text, bool parse_special) const {
    std::vector<std::int32_t> out;
    for (const Fragment &fragment : (parse_special ? special_ : plain_).cut(text)) {
        if (fragment.token >= 0) {
            out.push_back(fragment.token);
        } else {
            append(text.substr(fragment.begin, fragment.end - fragment.begin), out);
        }
    }
    return out;
}

}  // namespace bankml
