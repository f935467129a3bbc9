// The Q1_0 products in AVX-512, by table: a lane's sum of four values has only sixteen outcomes, one for each nibble,
// and a permutation of one 512-bit register looks up sixteen rows' at once, as floats that the activations' scale has
// been multiplied into: 21 bits at most, so that an addition has the bits of the definition's fused multiply-add.
#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "formats/interleaved_avx512.h"
#include "formats/q1_0/q1_0.h"

namespace bankml::avx512 {
namespace {

using interleaved::group_rows;
using interleaved::word_bytes;

constexpr std::size_t lanes = 8;
constexpr std::size_t tile_columns = 4;  // share the weights' bits; their sums stay in registers
constexpr std::size_t tile_groups = 4;   // share a lane's tables

constexpr std::size_t table_floats(std::size_t blocks) { return blocks * 4 * lanes * 16; }

// Where a column's sixteen sums of the values at (block, word, lane) stand in its table: in the order in which one
// column reads them, all lanes of a block at once, or several, lane by lane.
enum class Order { by_block, by_lane };
template <Order order>
constexpr std::size_t table_at(std::size_t blocks, std::size_t b, std::size_t j, std::size_t lane) {
    return order == Order::by_block ? ((b * lanes + lane) * 4 + j) * 16 : ((lane * blocks + b) * 4 + j) * 16;
}

// The four values as the bits of each nibble, as it stands in memory, choose them or their i8 negation.
template <Order order>
void tabulate(const Q8Column &column, std::size_t blocks, float *table) {
    alignas(64) std::uint8_t absent[64];
    for (std::uint32_t n = 0; n < 16; ++n) {
        for (std::uint32_t i = 0; i < 4; ++i) {
            absent[n * 4 + i] = (q1_0_nibbles(n) >> i & 1) == 0;
        }
    }
    const __mmask64 negated = _mm512_test_epi8_mask(_mm512_load_si512(absent), _mm512_set1_epi8(1));
    const __m512i zero = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
    const std::int8_t *q = column.q;
    for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t j = 0; j < 4; ++j, q += 32) {
            const __m512 d = _mm512_set1_ps(column.d[b * 4 + j]);
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                std::int32_t four;
                std::memcpy(&four, q + lane * 4, 4);
                const __m512i values = _mm512_set1_epi32(four);
                const __m512i signed_values = _mm512_mask_sub_epi8(values, negated, zero, values);
                const __m512 sums = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(zero, ones, signed_values));
                _mm512_store_ps(table + table_at<order>(blocks, b, j, lane), _mm512_mul_ps(d, sums));
            }
        }
    }
}

// Keeps a value that is used more than once in a register: the compiler would load it again, and loads are what these
// products are short of.
template <class Register>
inline Register kept(Register value) {
    asm("" : "+v"(value));
    return value;
}

// The sum of a lane's words so far and that of word j. One addition of three is a multiply-add: it has the same bits
// and runs on ports that the permutations leave free.
inline __m512 add_word(std::size_t j, __m512 sums, __m512 part) {
    return j == 2 ? _mm512_fmadd_ps(sums, _mm512_set1_ps(1.0f), part) : _mm512_add_ps(sums, part);
}

inline __m512 look_up(__m512i bits, std::size_t lane, __m512 table) {
    return _mm512_permutexvar_ps(lane ? _mm512_srli_epi32(bits, 4 * unsigned(lane)) : bits, table);
}

// sum_lanes of the definition, sixteen rows at once.
inline __m512 sum_rows(const __m512 lane[lanes]) {
    const __m512 a = _mm512_add_ps(lane[0], lane[4]), b = _mm512_add_ps(lane[1], lane[5]);
    const __m512 c = _mm512_add_ps(lane[2], lane[6]), d = _mm512_add_ps(lane[3], lane[7]);
    return _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
}

// A group of 32 rows against one column: all lanes of a block at once, so that the weights are read in their order.
void multiply_one(const std::uint8_t *w, std::size_t blocks, const float *table, float *y) {
    __m512 low[lanes], high[lanes];
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        low[lane] = high[lane] = _mm512_setzero_ps();
    }
    for (std::size_t b = 0; b < blocks; ++b, w += interleaved::block_bytes) {
        prefetch_block<_MM_HINT_T1>(w);
        __m512i bits[4][2];
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) {
            bits[j][0] = kept(_mm512_loadu_si512(w + j * word_bytes));
            bits[j][1] = kept(_mm512_loadu_si512(w + j * word_bytes + word_bytes / 2));
        }
        const __m512 first = scales(w, 0), second = scales(w, 1);
#pragma GCC unroll 8
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            __m512 part[2];
#pragma GCC unroll 4
            for (std::size_t j = 0; j < 4; ++j) {
                const __m512 sums = kept(_mm512_load_ps(table + table_at<Order::by_block>(blocks, b, j, lane)));
                const __m512 a = look_up(bits[j][0], lane, sums), z = look_up(bits[j][1], lane, sums);
                part[0] = j == 0 ? a : add_word(j, a, part[0]);
                part[1] = j == 0 ? z : add_word(j, z, part[1]);
            }
            low[lane] = _mm512_fmadd_ps(first, part[0], low[lane]);
            high[lane] = _mm512_fmadd_ps(second, part[1], high[lane]);
        }
    }
    _mm512_storeu_ps(y, sum_rows(low));
    _mm512_storeu_ps(y + 16, sum_rows(high));
}

// One lane of a group of 32 rows against C columns.
template <std::size_t C, std::size_t lane>
inline void multiply_lane(const std::uint8_t *w, std::size_t blocks, const float *const *tables, __m512 (&out)[C][2]) {
    __m512 acc[C][2];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) {
        acc[c][0] = acc[c][1] = _mm512_setzero_ps();
    }
    for (std::size_t b = 0; b < blocks; ++b, w += interleaved::block_bytes) {
        prefetch_part<lane>(w, tile_groups * blocks * interleaved::block_bytes);
        __m512 part[C][2];
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) {
            __m512i bits[2] = {_mm512_loadu_si512(w + j * word_bytes),
                               _mm512_loadu_si512(w + j * word_bytes + word_bytes / 2)};
            if constexpr (lane > 0) {
                bits[0] = _mm512_srli_epi32(bits[0], 4 * lane);
                bits[1] = _mm512_srli_epi32(bits[1], 4 * lane);
            }
            bits[0] = kept(bits[0]);
            bits[1] = kept(bits[1]);
#pragma GCC unroll 4
            for (std::size_t c = 0; c < C; ++c) {
                const __m512 sums = kept(_mm512_load_ps(tables[c] + table_at<Order::by_lane>(blocks, b, j, lane)));
#pragma GCC unroll 2
                for (std::size_t i = 0; i < 2; ++i) {
                    const __m512 found = kept(_mm512_permutexvar_ps(bits[i], sums));
                    part[c][i] = j == 0 ? found : kept(add_word(j, found, part[c][i]));
                }
            }
        }
        const __m512 scale[2] = {scales(w, 0), scales(w, 1)};
#pragma GCC unroll 4
        for (std::size_t c = 0; c < C; ++c) {
            acc[c][0] = kept(_mm512_fmadd_ps(scale[0], part[c][0], acc[c][0]));
            acc[c][1] = kept(_mm512_fmadd_ps(scale[1], part[c][1], acc[c][1]));
        }
    }
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) {
        out[c][0] = acc[c][0];
        out[c][1] = acc[c][1];
    }
}

template <std::size_t C>
using Lanes = __m512[lanes][tile_groups][C][2];

// The same of several groups: a lane's tables are small enough for the first cache and stay there meanwhile.
template <std::size_t C, std::size_t lane>
[[gnu::noinline]] void multiply_groups(const std::uint8_t *w, std::size_t groups, std::size_t blocks,
                                       const float *const *tables, Lanes<C> &out) {
    for (std::size_t g = 0; g < groups; ++g, w += blocks * interleaved::block_bytes) {
        multiply_lane<C, lane>(w, blocks, tables, out[lane][g]);
    }
}

template <std::size_t C>
void multiply_several(const std::uint8_t *w, std::size_t groups, std::size_t blocks, const float *const *tables,
                      float *y, std::size_t ldy) {
    Lanes<C> found;
    [&]<std::size_t... lane>(std::index_sequence<lane...>) {
        (multiply_groups<C, lane>(w, groups, blocks, tables, found), ...);
    }(std::make_index_sequence<lanes>{});
    for (std::size_t g = 0; g < groups; ++g) {
        for (std::size_t c = 0; c < C; ++c) {
            for (std::size_t i = 0; i < 2; ++i) {
                __m512 own[lanes];
                for (std::size_t lane = 0; lane < lanes; ++lane) {
                    own[lane] = found[lane][g][c][i];
                }
                _mm512_storeu_ps(y + c * ldy + g * group_rows + i * 16, sum_rows(own));
            }
        }
    }
}

// `rows`: whole groups.
template <std::size_t C>
void multiply_tile(const std::uint8_t *w, std::size_t rows, std::size_t blocks, const Q8Column *columns, float *scratch,
                   float *y, std::size_t ldy) {
    const std::size_t group = blocks * interleaved::block_bytes;
    const float *tables[C];
    for (std::size_t c = 0; c < C; ++c) {
        tables[c] = scratch + c * table_floats(blocks);
        tabulate<C == 1 ? Order::by_block : Order::by_lane>(columns[c], blocks, scratch + c * table_floats(blocks));
    }
    std::size_t r = 0;
    if constexpr (C == 1) {
        for (; r < rows; r += group_rows, w += group) {
            multiply_one(w, blocks, tables[0], y + r);
        }
    } else {
        for (std::size_t groups; r < rows; r += groups * group_rows, w += groups * group) {
            groups = std::min(tile_groups, (rows - r) / group_rows);
            multiply_several<C>(w, groups, blocks, tables, y + r, ldy);
        }
    }
}

}  // namespace

// The tables of a tile's columns are made once for a block of rows.
BlockPlan q1_0_plan(std::size_t k) {
    constexpr std::size_t rows = 768, slab_columns = 64;
    return {rows, slab_columns, tile_columns * table_floats(k / q1_0_weights) + 16};  // 16: to start on a cache line
}

void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy, float *scratch) {
    const std::size_t blocks = k / q1_0_weights, whole = rows / group_rows * group_rows;
    scratch += (64 - reinterpret_cast<std::uintptr_t>(scratch) % 64) % 64 / sizeof(float);
    for (std::size_t c = 0; whole > 0 && c < n;) {
        const std::size_t some = std::min(tile_columns, n - c);
        float *out = y + c * ldy;
        switch (some) {
            case 1: multiply_tile<1>(w, whole, blocks, columns + c, scratch, out, ldy); break;
            case 2: multiply_tile<2>(w, whole, blocks, columns + c, scratch, out, ldy); break;
            case 3: multiply_tile<3>(w, whole, blocks, columns + c, scratch, out, ldy); break;
            default: multiply_tile<tile_columns>(w, whole, blocks, columns + c, scratch, out, ldy);
        }
        c += some;
    }
    avx2::q1_0_rest(w + whole * blocks * q1_0_block_bytes, rows - whole, k, columns, n, y + whole, ldy);
}

}  // namespace bankml::avx512
