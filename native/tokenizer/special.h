// Cutting the texts of special tokens out of the input.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bankml {

// A stretch of the input: a special token, or (token < 0) text still to be split.
struct Fragment {
    std::size_t begin, end;
    std::int32_t token;
};

// When a token's own text is cut out of the input before anything else looks at it.
enum class Cut : std::uint8_t { never = 0, with_parse_special = 1, always = 2 };

// How a token's text is cut out: with the white space before it (`left`) or behind it (`right`).
struct SpecialRule {
    Cut cut = Cut::never;
    bool strips_left = false, strips_right = false;
};

class SpecialTokens {
public:
    // Those of `tokens` that `rules` cut, with special tokens parsed or not. One rule a token.
    SpecialTokens(const std::vector<std::string> &tokens, const std::vector<SpecialRule> &rules, bool parse_special);

    // The fragments of `input` in order. Longer tokens are cut first, wherever they occur, then shorter ones from what
    // is left.
    std::vector<Fragment> cut(std::string_view input) const;

private:
    struct Node {
        std::map<unsigned char, std::uint32_t> next;
        std::int32_t place = -1;  // in order_, of the token that ends here
    };
    std::vector<std::int32_t> order_;   // ids, longest first
    std::vector<std::size_t> lengths_;  // of order_, in bytes
    std::vector<SpecialRule> rules_;    // of order_
    std::vector<Node> trie_;
};

}  // namespace bankml
