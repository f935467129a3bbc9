// Block products in AVX2: eight rows' weights are interleaved once in scratch memory, four bytes a row and register
// lane, and then meet four activations of a column at a time.
#pragma once
#include "formats/avx2_blocks.h"

namespace bankml {
namespace {

inline constexpr std::size_t group_rows = 8, interleaved_rows = 32;  // rows of a lane each; rows prepared at once

// Register g of the result has bytes 4 g to 4 g + 3 of every row.
inline void interleave(__m256i row[8]) {
    __m256 lanes[8];
    for (int i = 0; i < 8; ++i) {
        lanes[i] = _mm256_castsi256_ps(row[i]);
    }
    transpose8(lanes);
    for (int i = 0; i < 8; ++i) {
        row[i] = _mm256_castps_si256(lanes[i]);
    }
}

inline __m256i four_values(const std::int8_t *q) {
    std::int32_t word;
    std::memcpy(&word, q, 4);
    return _mm256_set1_epi32(word);
}

// The scratch memory's first address on a cache line.
inline float *on_a_line(float *scratch) {
    return scratch + (64 - reinterpret_cast<std::uintptr_t>(scratch) % 64) % 64 / sizeof(float);
}

// Eight rows' blocks of 32 weights.
struct alignas(32) ChainBlock {
    __m256i value[8];
    __m256 scale;
};

inline BlockPlan chain_plan(std::size_t k) {
    const std::size_t blocks = interleaved_rows / group_rows * (k / small_block);
    return {interleaved_rows, SIZE_MAX, blocks * sizeof(ChainBlock) / sizeof(float) + 16};
}

template <class Codec>
void interleave_chain(const std::uint8_t *w, std::size_t rows, std::size_t blocks, ChainBlock *to) {
    const std::size_t row = blocks * Codec::bytes;
    for (std::size_t r = 0; r < rows; r += group_rows, w += group_rows * row) {
        for (std::size_t b = 0; b < blocks; ++b, ++to) {
            alignas(32) float scale[group_rows];
            for (std::size_t i = 0; i < group_rows; ++i) {
                const std::uint8_t *block = w + i * row + b * Codec::bytes;
                to->value[i] = Codec::load_codes(block);
                scale[i] = Codec::scale(block);
            }
            interleave(to->value);
            to->scale = _mm256_load_ps(scale);
        }
    }
}

// The sums of one block's products, eight rows by C columns. Codes without sign (Codec::offset is what they are too
// large by) take columns without -128.
template <class Codec, std::size_t C>
inline void chain_sums(const ChainBlock &block, const Q8Column *x, std::size_t b, __m256i sum[C]) {
    for (std::size_t c = 0; c < C; ++c) {
        sum[c] = _mm256_setzero_si256();
    }
    for (std::size_t g = 0; g < 8; ++g) {
        const __m256i value = block.value[g], size = Codec::offset ? value : _mm256_sign_epi8(value, value);
        for (std::size_t c = 0; c < C; ++c) {
            const __m256i q = four_values(x[c].q + b * small_block + g * 4);
            const __m256i pairs = _mm256_maddubs_epi16(size, Codec::offset ? q : _mm256_sign_epi8(q, value));
            sum[c] =
                Codec::short_pairs ? _mm256_add_epi16(sum[c], pairs) : _mm256_add_epi32(sum[c], pairs_to_fours(pairs));
        }
    }
    for (std::size_t c = 0; c < C; ++c) {
        if (Codec::short_pairs) {
            sum[c] = pairs_to_fours(sum[c]);
        }
        if (Codec::offset) {
            sum[c] = _mm256_sub_epi32(sum[c], _mm256_set1_epi32(Codec::offset * x[c].sum[b]));
        }
    }
}

// portable::chain_rows for many columns (rows % 8 == 0).
template <class Codec>
void chain_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                 float *y, std::size_t ldy, float *scratch) {
    if (Codec::offset && !std::all_of(columns, columns + n, [](const Q8Column &x) { return x.finite; })) {
        return chain_rows<Codec>(w, rows, k, columns, n, y, ldy);
    }
    const std::size_t blocks = k / small_block;
    ChainBlock *packed = reinterpret_cast<ChainBlock *>(on_a_line(scratch));
    interleave_chain<Codec>(w, rows, blocks, packed);
    for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
        const Q8Column *x = columns + first;
        for (std::size_t r = 0; r < rows; r += group_rows) {
            const ChainBlock *block = packed + r / group_rows * blocks;
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b, ++block) {
                __m256i sum[C];
                chain_sums<Codec, C>(*block, x, b, sum);
                for (std::size_t c = 0; c < C; ++c) {
                    const __m256 d = _mm256_mul_ps(block->scale, _mm256_set1_ps(x[c].d[b]));
                    acc[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c]), d, acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                _mm256_storeu_ps(y + (first + c) * ldy + r, acc[c]);
            }
        }
    });
}

}  // namespace
}  // namespace bankml
