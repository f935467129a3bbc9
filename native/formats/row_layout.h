// How the rows of a matrix stand in memory where that is not as in the file.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bankml {

// Rows are arranged once, in place, when a model's file has been read: the bytes stay as many, and those of a whole
// group of `group` rows stay together. What is left of the rows stands as in the file. Every product and every
// instruction set reads this one layout.
struct RowLayout {
    std::size_t group;
    // From the file's order. w: `rows` rows of `row_bytes` each.
    void (*arrange)(std::uint8_t *w, std::size_t rows, std::size_t row_bytes);
    // Row r of them, back in the file's order.
    void (*row)(const std::uint8_t *w, std::size_t rows, std::size_t row_bytes, std::size_t r, std::uint8_t *out);
};

}  // namespace bankml
