// What a type of weights is: one record a type, one folder each. A type in a file is one of formats/table.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "activations/activation.h"
#include "formats/row_layout.h"

namespace bankml {

// y[c * ldy + r] = w[r] . x[c] for `rows` rows of k weights, in the format's layout, and n columns of activations, an
// array in the format's activation format. `scratch` is for block products alone.
using Product = void(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
                     std::size_t ldy, float *scratch);

// How much a block product takes at once, and the floats of scratch memory that it needs for that.
struct BlockPlan {
    std::size_t rows, columns, scratch;
};

// One family of products: all of one order of additions, so of the same bits. `rows` takes any number of columns;
// `block`, which may be absent, prepares its rows once and is run from `block_from` columns on.
struct Products {
    Product *rows = nullptr;
    Product *block = nullptr;
    std::size_t block_from = 2;
    BlockPlan (*plan)(std::size_t k) = nullptr;
};

inline constexpr std::size_t max_families = 3;

// Which families the reference runs for the rows of one span: the last `tail` of them, where there is such a rule, by
// another than the ones before.
struct Choice {
    std::size_t family, tail_family, tail;
};

struct WeightFormat {
    int id;  // ggml's number of the type
    const char *name;
    std::size_t block_weights, block_bytes;
    const ActivationFormat *activation;
    // A row of weights as float32: the reference's dequantize_row_* of its base library, without fused operations.
    void (*widen)(const std::uint8_t *row, std::size_t columns, float *y);
    // For a matrix of this shape and `span` rows of activations that one sequence has in its micro-batch.
    Choice (*choose)(std::size_t rows, std::size_t columns, std::size_t span);
    Products products[max_families];  // the portable ones: the definition
    // nullptr: row after row, as in the file.
    const RowLayout *layout = nullptr;

    std::size_t row_bytes(std::size_t columns) const { return columns / block_weights * block_bytes; }
};

// Every type that is computed with, in the order of their numbers.
std::span<const WeightFormat *const> weight_formats();
// nullptr: no such type.
const WeightFormat *find_weight_format(int id);

// For a type whose bits depend neither on the matrix nor on the batch.
inline Choice one_family(std::size_t, std::size_t, std::size_t) { return {0, 0, 0}; }

// For a type that the reference repacks where a matrix has a multiple of eight rows; else one row by itself may have
// other bits than several.
template <std::size_t packed, std::size_t lone, std::size_t several>
Choice repacked_or(std::size_t rows, std::size_t, std::size_t span) {
    return {rows % 8 == 0 ? packed : span == 1 ? lone : several, 0, 0};
}

// For a type whose rows of eight the reference computes as a panel from eight rows of activations on.
inline constexpr std::size_t lanes_family = 0, panel_family = 1;
inline Choice panel_or_lanes(std::size_t rows, std::size_t, std::size_t span) {
    return {rows % 8 == 0 && span >= 8 ? panel_family : lanes_family, 0, 0};
}

// A product over typed columns as a Product.
template <class Column, auto function>
void product_of(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
                std::size_t ldy, float *) {
    function(w, rows, k, static_cast<const Column *>(x), n, y, ldy);
}
template <class Column, auto function>
void block_product_of(const std::uint8_t *w, std::size_t rows, std::size_t k, const void *x, std::size_t n, float *y,
                      std::size_t ldy, float *scratch) {
    function(w, rows, k, static_cast<const Column *>(x), n, y, ldy, scratch);
}

// What the nibbles of IQ4_NL and IQ4_XS stand for.
inline constexpr std::int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

inline std::uint16_t block_scale(const std::uint8_t *block) {
    std::uint16_t h;
    std::memcpy(&h, block, 2);
    return h;
}

// The types of the functions that the instruction sets of one format share.
using Q8Rows = void(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                    float *y, std::size_t ldy);

using Q8Block = void(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                     float *y, std::size_t ldy, float *scratch);
using Q8KBlock = void(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                      float *y, std::size_t ldy, float *scratch);
using Q8_1Rows = void(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8_1Column *columns, std::size_t n,
                      float *y, std::size_t ldy);
using Q8KRows = void(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                     float *y, std::size_t ldy);

}  // namespace bankml
