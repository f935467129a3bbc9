// Cutting text into the words that byte-pair merges may not cross.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace bankml {

class Span;

// Appends to `ends` where each piece of a span ends, in code points; the last end is the span's.
using SplitStep = void (*)(const Span &span, std::vector<std::size_t> &ends);

// The steps that cut a text one after another: each sees every piece of the one before by itself.
struct Pretokenizer {
    std::span<const SplitStep> steps;
};

// The one of that name.
std::optional<Pretokenizer> pretokenizer_named(std::string_view name);

// Appends to `ends` where each word of `text` ends, in code points; the last end is text.size().
void split_words(Pretokenizer pretokenizer, const std::vector<char32_t> &text, std::vector<std::size_t> &ends);

}  // namespace bankml
