// Cutting text into the words that byte-pair merges may not cross.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

namespace bankml {

enum class Pretokenizer { smollm, qwen2 };

// The pre-tokenizer that `tokenizer.ggml.pre` names, if it is one of ours.
std::optional<Pretokenizer> pretokenizer_named(std::string_view name);

// Appends to `ends` where each word of `text` ends, in code points; the last end is text.size().
void split_words(Pretokenizer kind, const std::vector<char32_t> &text, std::vector<std::size_t> &ends);

}  // namespace bankml
