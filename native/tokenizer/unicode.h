// Code points: what a pre-tokenizer needs to know of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bankml::unicode {

enum class Class : std::uint8_t { other, letter, number, space, mark, punctuation, symbol };

// The class of a code point in Unicode 15.1.0; of a value past U+10FFFF, `other`.
Class class_of(char32_t code_point);

// Bytes of `code_point` in UTF-8.
std::size_t utf8_length(char32_t code_point);

// Decodes as the reference does: a byte that begins no sequence becomes U+FFFD by itself; overlong forms and surrogates
// are taken at their value. A value past U+10FFFF (where the reference throws) counts as such a byte too.
void decode(std::string_view bytes, std::vector<char32_t> &code_points);

void append_utf8(char32_t code_point, std::string &out);

}  // namespace bankml::unicode
