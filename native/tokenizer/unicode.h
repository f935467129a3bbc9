// Code points: what a tokenizer needs to know of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bankml::unicode {

// What is read where bytes are no character.
inline constexpr char32_t REPLACEMENT = 0xFFFD;

enum class Class : std::uint8_t { other, letter, number, space, mark, punctuation, symbol, control };

// The class of a code point in Unicode 15.1.0; of one that is unassigned and of a value past U+10FFFF, `other`.
Class class_of(char32_t code_point);

// A code point in lower case: of a lower case of several code points the first.
char32_t lower_case(char32_t code_point);

// The first code point of the canonical decomposition: a letter without its accents.
char32_t base_of(char32_t code_point);

// Bytes of `code_point` in UTF-8.
std::size_t utf8_length(char32_t code_point);

// Decodes as the reference does: a byte that begins no sequence becomes U+FFFD by itself; overlong forms and surrogates
// are taken at their value. A value past U+10FFFF (where the reference throws) counts as such a byte too.
void decode(std::string_view bytes, std::vector<char32_t> &code_points);

void append_utf8(char32_t code_point, std::string &out);

}  // namespace bankml::unicode
