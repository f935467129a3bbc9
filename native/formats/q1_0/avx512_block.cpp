// The Q1_0 product for many columns, by table: a lane's sum of four values has only sixteen outcomes, one for each four
// bits, and a permutation of one 512-bit register looks up sixteen rows' at once, already as floats. That takes the
// masked negation, the sum and the conversion of every row away, and leaves one permutation and one multiply-add.
#include <immintrin.h>

#include <algorithm>

#include "formats/q1_0/q1_0.h"
#include "kernels/avx2/vector.h"

namespace bankml::avx512 {
namespace {

constexpr std::size_t group_rows = 32;  // two registers of rows, which share each table's load
constexpr std::size_t tile_columns = 4;
constexpr int lanes_a_pass = 2;  // of the definition's eight: what the registers hold beside the tile
constexpr int passes = 8 / lanes_a_pass;

// One block of 32 rows: the four words of bits and the scale of each, row by row in the lanes.
struct alignas(64) PackedBlock {
    std::uint32_t bits[4][group_rows];
    float scale[group_rows];
};

constexpr std::size_t packed_floats(std::size_t rows, std::size_t blocks) {
    return rows / group_rows * blocks * sizeof(PackedBlock) / sizeof(float);
}

void pack(const std::uint8_t *w, std::size_t rows, std::size_t blocks, PackedBlock *packed) {
    const std::size_t row = blocks * q1_0_block_bytes;
    for (std::size_t r = 0; r < rows; r += group_rows, w += group_rows * row) {
        for (std::size_t b = 0; b < blocks; ++b, ++packed) {
            for (std::size_t i = 0; i < group_rows; ++i) {
                const std::uint8_t *block = w + i * row + b * q1_0_block_bytes;
                std::uint32_t words[4];
                std::memcpy(words, block + 2, 16);
                for (std::size_t j = 0; j < 4; ++j) {
                    packed->bits[j][i] = words[j];
                }
                packed->scale[i] = widen_one(block_scale(block));
            }
        }
    }
}

// Sixteen floats for each four values of q: their sum where the bits of the index choose +q or its i8 negation.
void tabulate(const std::int8_t *q, std::size_t k, float *table) {
    const __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __mmask16 has[4];
    for (int i = 0; i < 4; ++i) {
        has[i] = _mm512_test_epi32_mask(index, _mm512_set1_epi32(1 << i));
    }
    for (std::size_t at = 0; at < k; at += 4, table += 16) {
        __m512i sum = _mm512_setzero_si512();
        for (int i = 0; i < 4; ++i) {
            const std::int8_t value = q[at + i], negated = std::int8_t(std::uint8_t(-std::int32_t(value)));
            sum = _mm512_add_epi32(sum,
                                   _mm512_mask_mov_epi32(_mm512_set1_epi32(negated), has[i], _mm512_set1_epi32(value)));
        }
        _mm512_store_ps(table, _mm512_cvtepi32_ps(sum));
    }
}

inline __m512i four_bits(const std::uint32_t *bits, int lane) {
    return _mm512_srl_epi32(_mm512_load_si512(bits), _mm_cvtsi32_si128(4 * lane));
}

// 32 rows against C columns. A pass takes lanes_a_pass of the eight lanes through one block's four words.
template <std::size_t C>
void multiply_group(const PackedBlock *packed, std::size_t blocks, const float *const *tables, const Q8Column *columns,
                    float *y, std::size_t ldy) {
    alignas(64) __m512 acc[passes][C][2][lanes_a_pass];
    std::memset(acc, 0, sizeof acc);
    for (std::size_t b = 0; b < blocks; ++b, ++packed) {
        for (int pass = 0; pass < passes; ++pass) {
            __m512 part[C][2][lanes_a_pass];
#pragma GCC unroll 4
            for (std::size_t j = 0; j < 4; ++j) {
#pragma GCC unroll 2
                for (int l = 0; l < lanes_a_pass; ++l) {
                    const int lane = pass * lanes_a_pass + l;
                    const __m512i low = four_bits(packed->bits[j], lane), high = four_bits(packed->bits[j] + 16, lane);
#pragma GCC unroll 4
                    for (std::size_t c = 0; c < C; ++c) {
                        const __m512 table = _mm512_load_ps(tables[c] + ((b * 4 + j) * 8 + std::size_t(lane)) * 16);
                        const __m512 d = _mm512_set1_ps(columns[c].d[b * 4 + j]);
                        const __m512 a = _mm512_permutexvar_ps(low, table), z = _mm512_permutexvar_ps(high, table);
                        part[c][0][l] = j == 0 ? _mm512_mul_ps(d, a) : _mm512_fmadd_ps(d, a, part[c][0][l]);
                        part[c][1][l] = j == 0 ? _mm512_mul_ps(d, z) : _mm512_fmadd_ps(d, z, part[c][1][l]);
                    }
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                for (int half = 0; half < 2; ++half) {
                    const __m512 scale = _mm512_load_ps(packed->scale + half * 16);
                    for (int l = 0; l < lanes_a_pass; ++l) {
                        acc[pass][c][half][l] = _mm512_fmadd_ps(scale, part[c][half][l], acc[pass][c][half][l]);
                    }
                }
            }
        }
    }
    for (std::size_t c = 0; c < C; ++c) {
        for (int half = 0; half < 2; ++half) {  // sum_lanes of the definition, sixteen rows at once
            const auto lane = [&](int l) { return acc[l / lanes_a_pass][c][half][l % lanes_a_pass]; };
            __m512 quarter[4];
            for (int i = 0; i < 4; ++i) {
                quarter[i] = _mm512_add_ps(lane(i), lane(i + 4));
            }
            const __m512 even = _mm512_add_ps(quarter[0], quarter[2]), odd = _mm512_add_ps(quarter[1], quarter[3]);
            _mm512_storeu_ps(y + c * ldy + half * 16, _mm512_add_ps(even, odd));
        }
    }
}

template <std::size_t C>
void multiply_tile(const PackedBlock *packed, std::size_t rows, std::size_t blocks, float *tables,
                   const Q8Column *columns, float *y, std::size_t ldy) {
    const std::size_t k = blocks * q1_0_weights;
    const float *table[C];
    for (std::size_t c = 0; c < C; ++c) {
        table[c] = tables + c * k * 4;
        tabulate(columns[c].q, k, tables + c * k * 4);
    }
    for (std::size_t r = 0; r < rows; r += group_rows, packed += blocks) {
        multiply_group<C>(packed, blocks, table, columns, y + r, ldy);
    }
}

}  // namespace

// A block of rows is prepared once for a slab of columns; both are as large as caches and the number of threads allow.
BlockPlan q1_0_plan(std::size_t k) {
    constexpr std::size_t block_bytes = 360000, slab_columns = 64;
    const std::size_t blocks = k / q1_0_weights;
    const std::size_t rows = std::max<std::size_t>(block_bytes / (blocks * q1_0_block_bytes) / 32 * 32, 32);
    return {rows, slab_columns,
            packed_floats(rows, blocks) + tile_columns * k * 4 + 16};  // 16: to start on a cache line
}

void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy, float *scratch) {
    const std::size_t blocks = k / q1_0_weights, whole = rows / group_rows * group_rows;
    scratch += (64 - reinterpret_cast<std::uintptr_t>(scratch) % 64) % 64 / sizeof(float);
    PackedBlock *packed = reinterpret_cast<PackedBlock *>(scratch);
    float *tables = scratch + packed_floats(whole, blocks);
    pack(w, whole, blocks, packed);
    for (std::size_t c = 0; c < n; c += tile_columns) {
        float *out = y + c * ldy;
        switch (n - c) {
            case 1: multiply_tile<1>(packed, whole, blocks, tables, columns + c, out, ldy); break;
            case 2: multiply_tile<2>(packed, whole, blocks, tables, columns + c, out, ldy); break;
            case 3: multiply_tile<3>(packed, whole, blocks, tables, columns + c, out, ldy); break;
            default: multiply_tile<tile_columns>(packed, whole, blocks, tables, columns + c, out, ldy);
        }
    }
    q1_0_rows(w + whole * blocks * q1_0_block_bytes, rows - whole, k, columns, n, y + whole, ldy);
}

}  // namespace bankml::avx512
