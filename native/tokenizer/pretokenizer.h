// Cutting text into the words that byte-pair merges may not cross.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

namespace bankml {

// gpt2: GPT-2's words. digits: the same between numbers, each of which is a word. qwen2: words that one other character
// may precede, and single digits. llama3: the same with up to three digits. tekken: words that begin with capitals, and
// single digits. gpt4o: the same with contractions and up to three digits.
enum class Pretokenizer { gpt2, digits, qwen2, llama3, tekken, gpt4o };

// The one of that name.
std::optional<Pretokenizer> pretokenizer_named(std::string_view name);

// Appends to `ends` where each word of `text` ends, in code points; the last end is text.size().
void split_words(Pretokenizer kind, const std::vector<char32_t> &text, std::vector<std::size_t> &ends);

}  // namespace bankml
