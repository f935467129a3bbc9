// The Q1_0 products in AVX2. Interleaved rows are multiplied by table: a lane's sum of four values has eight outcomes
// and their negatives, one for each nibble, and a permutation of one register looks up eight rows' at once, as floats
// that the activations' scale has been multiplied into: 21 bits at most, so that an addition has the bits of the
// definition's fused multiply-add. A sum of nothing may come out as -0 instead of 0, which no addition to a lane shows.
#include <algorithm>
#include <utility>
#include <vector>

#include "formats/avx2_blocks.h"
#include "formats/interleaved_avx2.h"
#include "formats/q1_0/q1_0.h"

namespace bankml::avx2 {
namespace {

// 32 bits to 32 bytes: 0xff where the bit is 0.
inline __m256i absent_bits(const std::uint8_t *bits) {
    std::int32_t word;
    std::memcpy(&word, bits, 4);
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                                            3, 3, 3, 3, 3, 3, 3);
    const __m256i each = _mm256_set1_epi64x(std::int64_t(0x8040201008040201ull));
    const __m256i picked = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), each);
    return _mm256_cmpeq_epi8(picked, _mm256_setzero_si256());
}

using interleaved::group_rows;
using interleaved::word_bytes;

constexpr std::size_t lanes = 8, tile_columns = 2;

// Where a column's eight sums of the values at (block, word, lane) stand: lane by lane, so that a pass over one lane
// reads neighbours.
constexpr std::size_t table_floats(std::size_t blocks) { return blocks * 4 * lanes * 8; }
constexpr std::size_t table_at(std::size_t blocks, std::size_t b, std::size_t j, std::size_t lane) {
    return ((lane * blocks + b) * 4 + j) * 8;
}

// The sums of four values, the last of them as it is, the others as the bits of each index choose them or their
// negation. No value is -128.
void tabulate(const Q8Column &column, std::size_t blocks, float *table) {
    const __m256i signs = _mm256_setr_epi8(-1, -1, -1, 1, 1, -1, -1, 1, -1, 1, -1, 1, 1, 1, -1, 1, -1, -1, 1, 1, 1, -1,
                                           1, 1, -1, 1, 1, 1, 1, 1, 1, 1);
    const std::int8_t *q = column.q;
    for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t j = 0; j < 4; ++j) {
            const __m256 d = _mm256_set1_ps(column.d[b * 4 + j]);
            for (std::size_t lane = 0; lane < lanes; ++lane, q += 4) {
                std::int32_t four;
                std::memcpy(&four, q, 4);
                const __m256i sums = sum_fours(_mm256_sign_epi8(_mm256_set1_epi32(four), signs));
                _mm256_storeu_ps(table + table_at(blocks, b, j, lane), _mm256_mul_ps(d, _mm256_cvtepi32_ps(sums)));
            }
        }
    }
}

// One lane of R registers of eight rows, from the group's register `first` on, against C columns.
template <std::size_t R, std::size_t C, std::size_t lane>
[[gnu::noinline]] void multiply_lane(const std::uint8_t *w, std::size_t first, std::size_t blocks,
                                     const float *const *tables, __m256 (&out)[C][R]) {
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    __m256 acc[C][R];
#pragma GCC unroll 2
    for (std::size_t c = 0; c < C; ++c) {
#pragma GCC unroll 4
        for (std::size_t r = 0; r < R; ++r) {
            acc[c][r] = _mm256_setzero_ps();
        }
    }
    for (std::size_t b = 0; b < blocks; ++b, w += interleaved::block_bytes) {
        prefetch_part<lane>(w, blocks * interleaved::block_bytes);
        __m256 part[C][R];
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) {
#pragma GCC unroll 4
            for (std::size_t r = 0; r < R; ++r) {
                const __m256i bits = load_bytes(w + j * word_bytes + (first + r) * 32);
                const __m256i index = _mm256_srli_epi32(bits, 4 * lane);
                const __m256 negated =
                    _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_slli_epi32(bits, 28 - 4 * lane), sign));
#pragma GCC unroll 2
                for (std::size_t c = 0; c < C; ++c) {
                    const __m256 table = _mm256_loadu_ps(tables[c] + table_at(blocks, b, j, lane));
                    const __m256 sums = _mm256_xor_ps(_mm256_permutevar8x32_ps(table, index), negated);
                    part[c][r] = j == 0 ? sums : _mm256_add_ps(sums, part[c][r]);
                }
            }
        }
#pragma GCC unroll 4
        for (std::size_t r = 0; r < R; ++r) {
            const __m256 scale = scales(w, first + r);
#pragma GCC unroll 2
            for (std::size_t c = 0; c < C; ++c) {
                acc[c][r] = _mm256_fmadd_ps(scale, part[c][r], acc[c][r]);
            }
        }
    }
#pragma GCC unroll 2
    for (std::size_t c = 0; c < C; ++c) {
#pragma GCC unroll 4
        for (std::size_t r = 0; r < R; ++r) {
            out[c][r] = acc[c][r];
        }
    }
}

template <std::size_t R, std::size_t C>
void multiply_registers(const std::uint8_t *w, std::size_t first, std::size_t blocks, const float *const *tables,
                        float *y, std::size_t ldy) {
    __m256 found[lanes][C][R];
    [&]<std::size_t... lane>(std::index_sequence<lane...>) {
        (multiply_lane<R, C, lane>(w, first, blocks, tables, found[lane]), ...);
    }(std::make_index_sequence<lanes>{});
    for (std::size_t c = 0; c < C; ++c) {
        for (std::size_t r = 0; r < R; ++r) {  // sum_lanes of the definition, eight rows at once
            __m256 quarter[4];
            for (std::size_t i = 0; i < 4; ++i) {
                quarter[i] = _mm256_add_ps(found[i][c][r], found[i + 4][c][r]);
            }
            const __m256 even = _mm256_add_ps(quarter[0], quarter[2]), odd = _mm256_add_ps(quarter[1], quarter[3]);
            _mm256_storeu_ps(y + c * ldy + (first + r) * 8, _mm256_add_ps(even, odd));
        }
    }
}

// Whole groups against one or two columns without a -128.
void multiply_by_table(const std::uint8_t *w, std::size_t rows, std::size_t blocks, const Q8Column *columns,
                       std::size_t n, float *scratch, float *y, std::size_t ldy) {
    const float *tables[tile_columns];
    for (std::size_t c = 0; c < n; ++c) {
        tables[c] = scratch + c * table_floats(blocks);
        tabulate(columns[c], blocks, scratch + c * table_floats(blocks));
    }
    for (std::size_t r = 0; r < rows; r += group_rows, w += blocks * interleaved::block_bytes) {
        if (n == 1) {
            multiply_registers<4, 1>(w, 0, blocks, tables, y + r, ldy);
        } else {
            multiply_registers<2, 2>(w, 0, blocks, tables, y + r, ldy);
            multiply_registers<2, 2>(w, 2, blocks, tables, y + r, ldy);
        }
    }
}

}  // namespace

void q1_0_rest(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q1_0_weights;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q1_0_block_bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q1_0_block_bytes;
                __m256 part[C];
                for (std::size_t j = 0; j < 4; ++j) {
                    const __m256i absent = absent_bits(block + 2 + j * 4);
                    for (std::size_t c = 0; c < C; ++c) {
                        const Q8Column &x = columns[first + c];
                        const __m256i q = load_bytes(x.q + b * q1_0_weights + j * 32);
                        const __m256i signed_q = _mm256_sub_epi8(_mm256_xor_si256(q, absent), absent);
                        const __m256 four = _mm256_cvtepi32_ps(sum_fours(signed_q));
                        const __m256 d = _mm256_set1_ps(x.d[b * 4 + j]);
                        part[c] = j == 0 ? _mm256_mul_ps(d, four) : _mm256_fmadd_ps(d, four, part[c]);
                    }
                }
                const __m256 scale = _mm256_set1_ps(widen_one(block_scale(block)));
                for (std::size_t c = 0; c < C; ++c) {
                    acc[c] = _mm256_fmadd_ps(scale, part[c], acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]);
            }
        });
    }
}

namespace {

// A column that has a -128, whose negation is itself.
void multiply_row_by_row(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column &column, float *y) {
    std::vector<std::uint8_t> row(k / q1_0_weights * q1_0_block_bytes);
    for (std::size_t r = 0; r < rows; ++r) {
        q1_0_layout.row(w, rows, row.size(), r, row.data());
        q1_0_rest(row.data(), 1, k, &column, 1, y + r, 0);
    }
}

}  // namespace

// The tables of a tile's columns are made once for a block of rows.
BlockPlan q1_0_plan(std::size_t k) {
    constexpr std::size_t rows = 768, slab_columns = 64;
    return {rows, slab_columns, tile_columns * table_floats(k / q1_0_weights)};
}

void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy, float *scratch) {
    const std::size_t blocks = k / q1_0_weights, whole = rows / group_rows * group_rows;
    for (std::size_t c = 0; whole > 0 && c < n;) {
        const std::size_t some = std::min(tile_columns, n - c);
        if (std::all_of(columns + c, columns + c + some, [](const Q8Column &x) { return x.finite; })) {
            multiply_by_table(w, whole, blocks, columns + c, some, scratch, y + c * ldy, ldy);
            c += some;
        } else {
            multiply_row_by_row(w, whole, k, columns[c], y + c * ldy);
            ++c;
        }
    }
    q1_0_rest(w + whole * blocks * q1_0_block_bytes, rows - whole, k, columns, n, y + whole, ldy);
}

}  // namespace bankml::avx2
