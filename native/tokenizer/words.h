// Where the word ends that a regular expression finds at one place of a text. Each function matches the expression
// above it, at `at` alone, and returns `at` where it finds none.
#pragma once
#include "tokenizer/span.h"

namespace bankml {

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word(const Span &span, std::size_t at);

enum class Contractions { no, yes };

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <std::size_t D, Contractions C = Contractions::yes>
std::size_t joined_word(const Span &span, std::size_t at);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|
// \s+(?!\S)|\s+
std::size_t qwen35_word(const Span &span, std::size_t at);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t seed_word(const Span &span, std::size_t at);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|
// \s*[\r\n]|\s+(?!\S)|\s+
std::size_t phrase(const Span &span, std::size_t at);

enum class Marks { no, yes };

// [^\r\n\p{L}\p{N}]?U*W+|[^\r\n\p{L}\p{N}]?U+W*|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
// U is a letter but a-z and W a letter but A-Z, since the reference knows the case of ASCII alone: any other letter is
// both, and so is a mark with `Marks::yes`. A contraction may follow a word where D is 3.
template <std::size_t D, Marks M = Marks::no>
std::size_t cased_word(const Span &span, std::size_t at);

// [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|
// \s+(?!\S)|\s+
template <std::size_t D>
std::size_t marked_word(const Span &span, std::size_t at);

// [\p{Han}]+|[^\r\n\p{L}\p{N}]?L+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
// \s+(?!\S)|\s+, where L is a letter that is not Han
std::size_t kimi_word(const Span &span, std::size_t at);

enum class Lines { after_signs, alone };

// [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// Where lines end alone: … ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+
template <Lines L>
std::size_t deepseek3_word(const Span &span, std::size_t at);

}  // namespace bankml
