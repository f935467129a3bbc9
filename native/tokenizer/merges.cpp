#include "tokenizer/merges.h"

#include <stdexcept>

#include "tokenizer/unicode.h"

namespace bankml {

std::array<std::string, 256> byte_characters() {
    std::array<std::string, 256> characters;
    char32_t next = 256;
    for (unsigned b = 0; b < 256; ++b) {
        const bool printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        unicode::append_utf8(printable ? b : next++, characters[b]);
    }
    return characters;
}

namespace {

// The tokens whose characters all stand for bytes, by those bytes.
std::unordered_map<std::string, std::int32_t> words_of(const std::vector<std::string> &tokens) {
    std::unordered_map<std::string, char> bytes;
    const auto characters = byte_characters();
    for (unsigned b = 0; b < 256; ++b) {
        bytes.emplace(characters[b], static_cast<char>(b));
    }
    std::unordered_map<std::string, std::int32_t> words;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        std::string word;
        std::size_t at = 0;
        for (std::size_t size = 1; at < tokens[id].size(); at += size) {
            size = (static_cast<unsigned char>(tokens[id][at]) & 0xC0) == 0xC0 ? 2 : 1;
            const auto found = bytes.find(tokens[id].substr(at, size));
            if (found == bytes.end()) {
                break;
            }
            word.push_back(found->second);
        }
        if (at >= tokens[id].size()) {
            words.emplace(std::move(word), static_cast<std::int32_t>(id));
        }
    }
    return words;
}

}  // namespace

MergeTable::MergeTable(const std::vector<std::string> &tokens, const std::vector<std::string> &merges,
                       Alphabet alphabet, bool whole_words)
    : n_tokens_(tokens.size()) {
    if (whole_words) {
        words_ = words_of(tokens);
    }
    numbers_.reserve(tokens.size() + 256);
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        numbers_.emplace(tokens[id], id);
    }
    if (alphabet == Alphabet::bytes) {
        const auto characters = byte_characters();
        for (unsigned b = 0; b < 256; ++b) {
            bytes_[b] = intern(characters[b]);
        }
    }

    std::size_t size = 16;
    while (size < merges.size() * 2) {
        size *= 2;
    }
    slots_.resize(size);
    mask_ = size - 1;
    std::string made;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const std::string_view merge = merges[rank];
        const std::size_t space = merge.find(' ', 1);
        if (space == std::string_view::npos) {
            throw std::invalid_argument("merge " + std::to_string(rank) + " has no two sides");
        }
        const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
        made.assign(left).append(right);
        insert(intern(left), intern(right), static_cast<std::uint32_t>(rank), intern(made));
    }

    for (unsigned b = 0; b < 256; ++b) {
        byte_tokens_[b] = byte_token(static_cast<unsigned char>(b), alphabet);
    }
    for (const std::string &text : others_) {
        append_bytes(text, spelled_.emplace_back());
    }
    if (alphabet == Alphabet::characters) {
        std::vector<char32_t> code_points;
        for (const auto &[text, number] : numbers_) {
            if (text.size() <= 4) {
                unicode::decode(text, code_points);
                if (code_points.size() == 1) {
                    characters_.emplace(code_points.front(), number);
                }
            }
        }
    }
    numbers_ = {};
    others_ = {};
}

std::int32_t MergeTable::word(const std::string &word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? -1 : found->second;
}

std::uint32_t MergeTable::character(char32_t c) const {
    const auto found = characters_.find(c);
    return found == characters_.end() ? UNKNOWN | static_cast<std::uint32_t>(c) : found->second;
}

std::int32_t MergeTable::byte_token(unsigned char b, Alphabet alphabet) const {
    static constexpr char HEX[] = "0123456789ABCDEF";
    const std::string text = alphabet == Alphabet::bytes ? std::string(1, static_cast<char>(b))
                                                         : std::string{'<', '0', 'x', HEX[b >> 4], HEX[b & 15], '>'};
    const auto found = numbers_.find(text);
    return found == numbers_.end() || found->second >= n_tokens_ ? -1 : static_cast<std::int32_t>(found->second);
}

void MergeTable::append_bytes(std::string_view text, std::vector<std::int32_t> &out) const {
    for (const char c : text) {
        const std::int32_t token = byte_tokens_[static_cast<unsigned char>(c)];
        if (token >= 0) {
            out.push_back(token);
        }
    }
}

std::uint32_t MergeTable::intern(std::string_view text) {
    const auto [at, is_new] = numbers_.emplace(text, n_tokens_ + others_.size());
    if (is_new) {
        others_.emplace_back(text);
    }
    return at->second;
}

std::size_t MergeTable::slot(std::uint64_t pair) const {
    std::uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    std::size_t at = (hash ^ hash >> 32) & mask_;
    while (slots_[at].pair != pair && slots_[at].pair != EMPTY) {
        at = (at + 1) & mask_;
    }
    return at;
}

void MergeTable::insert(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t made) {
    const std::uint64_t pair = std::uint64_t{left} << 32 | right;
    Merge &merge = slots_[slot(pair)];
    if (merge.pair == EMPTY) {
        merge = {pair, rank, made};  // of a pair named twice, the first rank counts
    }
}

const MergeTable::Merge &MergeTable::find(std::uint32_t left, std::uint32_t right) const {
    return slots_[slot(std::uint64_t{left} << 32 | right)];
}

void MergeTable::append_tokens(std::uint32_t s, std::vector<std::int32_t> &out) const {
    if (s < n_tokens_) {
        out.push_back(static_cast<std::int32_t>(s));
    } else if ((s & UNKNOWN) != 0) {
        std::string text;
        unicode::append_utf8(s & ~UNKNOWN, text);
        append_bytes(text, out);
    } else {
        const auto &spelled = spelled_[s - n_tokens_];
        out.insert(out.end(), spelled.begin(), spelled.end());
    }
}

}  // namespace bankml
