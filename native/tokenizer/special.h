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

class SpecialTokens {
public:
    // `ids` in ascending order; `text(id)` their spelling in `tokens`.
    SpecialTokens(const std::vector<std::string> &tokens, std::vector<std::int32_t> ids);

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
    std::vector<Node> trie_;
};

}  // namespace bankml
