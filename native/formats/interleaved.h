// Matrices interleaved by 32 rows, of formats whose blocks are an f16 scale and sixteen bytes. A group of 32 rows has,
// block by block, the first word of each row's sixteen bytes, then the second, the third, the fourth, and the scales:
// what a register of neighbouring rows loads at once. A word's bits may be reordered, by a function that is its own
// inverse.
#pragma once
#include <cstring>
#include <vector>

#include "formats/row_layout.h"

namespace bankml::interleaved {

inline constexpr std::size_t group_rows = 32, words = 4, row_block_bytes = 18;
inline constexpr std::size_t word_bytes = group_rows * 4;  // from one word of a group's block to the next
inline constexpr std::size_t scales_at = words * word_bytes, block_bytes = group_rows * row_block_bytes;

using Reorder = std::uint32_t(std::uint32_t);

template <Reorder *reorder>
void arrange(std::uint8_t *w, std::size_t rows, std::size_t row_bytes) {
    std::vector<std::uint8_t> group(group_rows * row_bytes);
    for (std::size_t r = 0; r + group_rows <= rows; r += group_rows, w += group.size()) {
        std::memcpy(group.data(), w, group.size());
        for (std::size_t i = 0; i < group_rows; ++i) {
            const std::uint8_t *from = group.data() + i * row_bytes;
            for (std::size_t b = 0; b < row_bytes / row_block_bytes; ++b, from += row_block_bytes) {
                std::uint8_t *to = w + b * block_bytes;
                for (std::size_t j = 0; j < words; ++j) {
                    std::uint32_t word;
                    std::memcpy(&word, from + 2 + j * 4, 4);
                    word = reorder(word);
                    std::memcpy(to + j * word_bytes + i * 4, &word, 4);
                }
                std::memcpy(to + scales_at + i * 2, from, 2);
            }
        }
    }
}

template <Reorder *reorder>
void row(const std::uint8_t *w, std::size_t rows, std::size_t row_bytes, std::size_t r, std::uint8_t *out) {
    const std::size_t i = r % group_rows, first = r - i;
    if (first + group_rows > rows) {
        std::memcpy(out, w + r * row_bytes, row_bytes);
        return;
    }
    const std::uint8_t *from = w + first * row_bytes;
    for (std::size_t b = 0; b < row_bytes / row_block_bytes; ++b, from += block_bytes, out += row_block_bytes) {
        std::memcpy(out, from + scales_at + i * 2, 2);
        for (std::size_t j = 0; j < words; ++j) {
            std::uint32_t word;
            std::memcpy(&word, from + j * word_bytes + i * 4, 4);
            word = reorder(word);
            std::memcpy(out + 2 + j * 4, &word, 4);
        }
    }
}

template <Reorder *reorder>
inline constexpr RowLayout layout = {group_rows, arrange<reorder>, row<reorder>};

}  // namespace bankml::interleaved
