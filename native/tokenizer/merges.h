// Byte-pair merges over interned strings.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bankml {

// The printable character (in UTF-8) that stands for each byte in a vocabulary of this kind.
std::array<std::string, 256> byte_characters();

// What the strings of a vocabulary are made of: characters that each stand for a byte, or the characters of the text.
enum class Alphabet { bytes, characters };

// Which pairs of strings merge, at what rank, and into what. Strings are numbered: a token has its own id, any other
// string that a merge names or makes comes after the last token.
class MergeTable {
public:
    static constexpr std::uint32_t NO_RANK = 0xFFFFFFFF;
    struct Merge {
        std::uint64_t pair = EMPTY;  // left << 32 | right
        std::uint32_t rank = NO_RANK;
        std::uint32_t made = 0;
    };

    // `whole_words`: `word` finds tokens by their bytes.
    MergeTable(const std::vector<std::string> &tokens, const std::vector<std::string> &merges, Alphabet alphabet,
               bool whole_words);

    // The token that is `word`, -1 for none.
    std::int32_t word(const std::string &word) const;

    // The merge of `left` with `right`; its rank is NO_RANK if there is none.
    const Merge &find(std::uint32_t left, std::uint32_t right) const;

    // The string a byte of input begins as, in an alphabet of bytes.
    std::uint32_t byte(unsigned char b) const { return bytes_[b]; }

    // The string a character of input begins as, in an alphabet of characters; of one that no token and no merge has
    // it is a string of its own.
    std::uint32_t character(char32_t c) const;

    // Appends the tokens of string `s`: itself, or where it is no token the tokens of the bytes of its spelling, their
    // text that byte in an alphabet of bytes and <0xXX> in one of characters.
    void append_tokens(std::uint32_t s, std::vector<std::int32_t> &out) const;

private:
    static constexpr std::uint64_t EMPTY = ~std::uint64_t{0};
    static constexpr std::uint32_t UNKNOWN = 0x80000000;  // added to a character that is no string

    std::uint32_t intern(std::string_view text);
    void insert(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t made);
    std::size_t slot(std::uint64_t pair) const;

    std::int32_t byte_token(unsigned char b, Alphabet alphabet) const;
    void append_bytes(std::string_view text, std::vector<std::int32_t> &out) const;

    std::size_t n_tokens_;
    std::unordered_map<std::string, std::uint32_t> numbers_;  // emptied once the table is built
    std::vector<std::string> others_;                         // the strings that are no token
    std::vector<std::vector<std::int32_t>> spelled_;          // their tokens, byte by byte
    std::array<std::uint32_t, 256> bytes_{};
    std::array<std::int32_t, 256> byte_tokens_{};  // the token of a byte that is left over, -1 for none
    std::unordered_map<char32_t, std::uint32_t> characters_;
    std::unordered_map<std::string, std::int32_t> words_;  // by their bytes
    std::vector<Merge> slots_;                             // open addressing, a power of two in size
    std::size_t mask_ = 0;
};

}  // namespace bankml
