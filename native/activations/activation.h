// What activations are converted to before they meet weights: one record a format, one folder each.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bankml {

// n rows of k activations are converted into one buffer, whose first bytes are an array of n columns: what a product
// reads.
struct ActivationFormat {
    const char *name;
    std::size_t block;                                           // k is a multiple of so many values
    std::size_t (*column_bytes)(std::size_t k);                  // from one column to the next
    std::size_t (*buffer_floats)(std::size_t k, std::size_t n);  // size of the buffer, in floats
    // Row i of n: k floats at x, already moved to row i.
    void (*convert)(std::size_t k, std::size_t n, std::size_t i, const float *x, float *buffer);
};

// f16: k floats a column, each rounded to f16 and widened again.
extern const ActivationFormat f16_activations;

// The same in bf16, and k floats as they are.
extern const ActivationFormat bf16_activations, f32_activations;

// q8_0: blocks of 32 signed bytes q with a scale d (widened from its f16) and the sum of the block's values.
struct Q8Column {
    const std::int8_t *q;
    const float *d;
    const std::int32_t *sum;
    bool finite = false;  // there is no -128 in q: what the quantizer gives for a value that is no finite number
};
inline constexpr std::size_t q8_0_values = 32;
extern const ActivationFormat q8_0_activations;

// q8_1: as q8_0, with s = f16(d * sum of the block's values), d before it is rounded. Both are widened.
struct Q8_1Column {
    const std::int8_t *q;
    const float *d;
    const float *s;
};
extern const ActivationFormat q8_1_activations;

// q8_K: blocks of 256 signed bytes with a scale d in float and the sum of each 16 values.
struct Q8KColumn {
    const std::int8_t *q;
    const float *d;
    const std::int16_t *sums;
};
inline constexpr std::size_t q8_K_values = 256, q8_K_sums = 16;  // sums a block
extern const ActivationFormat q8_K_activations;

}  // namespace bankml
