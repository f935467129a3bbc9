// UTF-8 as llama.cpp's grammars read it: a character may be cut anywhere, and continuation bytes are not always
// checked.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace bankml::grammar {

// The bits of a character whose last `missing` bytes have not come yet; -1: the bytes so far are no UTF-8.
struct Partial {
    std::uint32_t bits = 0;
    int missing = 0;

    bool operator==(const Partial &) const = default;
};

struct Decoded {
    std::vector<std::uint32_t> characters;
    Partial rest;
};

// The characters of `bytes` up to the first NUL, where `before` precedes them. Of bytes that are no UTF-8, no
// character.
Decoded decode(std::string_view bytes, Partial before);

}  // namespace bankml::grammar
