// The Q4_K product of many rows of activations in AVX2: eight rows of weights side by side, one a lane.
#include "formats/avx2_interleaved.h"
#include "formats/avx2_super_blocks.h"
#include "formats/q4_K/q4_K.h"

namespace bankml::avx2 {
namespace {

constexpr std::size_t tile_columns = 4;

// Eight rows' blocks: nibbles of part after part, every part's scale in both halves of a lane, the minima of two parts
// in a lane.
struct alignas(32) GroupBlock {
    __m256i value[8][8], scale[8], minima[4];
    __m256 d, dmin;
};

void interleave_group(const std::uint8_t *w, std::size_t row, GroupBlock &to) {
    alignas(32) std::uint32_t scale[8][8], minima[4][8];
    alignas(32) float d[8], dmin[8];
    for (std::size_t i = 0; i < group_rows; ++i) {
        const std::uint8_t *block = w + i * row;
        alignas(16) std::uint8_t six[16];
        _mm_store_si128(reinterpret_cast<__m128i *>(six), unpack_scales(block + 4));
        d[i] = half_at(block);
        dmin[i] = half_at(block + 2);
        for (std::size_t part = 0; part < 8; ++part) {
            scale[part][i] = six[part] * 0x10001u;
        }
        for (std::size_t pair = 0; pair < 4; ++pair) {
            minima[pair][i] = six[8 + 2 * pair] | std::uint32_t(six[9 + 2 * pair]) << 16;
            const __m256i nibbles = load_bytes(block + 16 + pair * 32), four = _mm256_set1_epi8(15);
            to.value[2 * pair][i] = _mm256_and_si256(nibbles, four);
            to.value[2 * pair + 1][i] = _mm256_and_si256(_mm256_srli_epi16(nibbles, 4), four);
        }
    }
    for (std::size_t part = 0; part < 8; ++part) {
        interleave(to.value[part]);
        to.scale[part] = load_bytes(scale[part]);
    }
    for (std::size_t pair = 0; pair < 4; ++pair) {
        to.minima[pair] = load_bytes(minima[pair]);
    }
    to.d = _mm256_load_ps(d);
    to.dmin = _mm256_load_ps(dmin);
}

// Adds the scaled sums of one part's 32 products: eight rows by the tile's columns.
inline void add_part(const GroupBlock &block, std::size_t part, const Q8KColumn *x, std::size_t b, __m256i *sum) {
    __m256i pairs[tile_columns];
    for (std::size_t g = 0; g < 8; ++g) {
        for (std::size_t c = 0; c < tile_columns; ++c) {
            const __m256i q = four_values(x[c].q + b * super_block + part * 32 + g * 4);
            const __m256i one = _mm256_maddubs_epi16(block.value[part][g], q);
            pairs[c] = g == 0 ? one : _mm256_add_epi16(pairs[c], one);
        }
    }
    for (std::size_t c = 0; c < tile_columns; ++c) {
        sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs[c], block.scale[part]));
    }
}

// The sums of the activations of parts 2 * pair and 2 * pair + 1, in both halves of every lane.
inline __m256i two_sums(const std::int16_t *sums, std::size_t pair) {
    const std::int16_t *four = sums + 4 * pair;
    const std::uint32_t low = std::uint16_t(four[0] + four[1]), high = std::uint16_t(four[2] + four[3]);
    return _mm256_set1_epi32(std::int32_t(low | high << 16));
}

void multiply_group(const GroupBlock *block, std::size_t blocks, const Q8KColumn *x, float *y, std::size_t ldy) {
    __m256 total[tile_columns], minima[tile_columns];
    for (std::size_t c = 0; c < tile_columns; ++c) {
        total[c] = minima[c] = _mm256_setzero_ps();
    }
    for (std::size_t b = 0; b < blocks; ++b, ++block) {
        for (std::size_t pair = 0; pair < 4; ++pair) {
            __m256i sum[tile_columns];
            for (__m256i &s : sum) {
                s = _mm256_setzero_si256();
            }
            add_part(*block, 2 * pair, x, b, sum);
            add_part(*block, 2 * pair + 1, x, b, sum);
            for (std::size_t c = 0; c < tile_columns; ++c) {
                const __m256 dx = _mm256_set1_ps(x[c].d[b]);
                const __m256i below = _mm256_madd_epi16(block->minima[pair], two_sums(x[c].sums + b * q8_K_sums, pair));
                total[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c]), _mm256_mul_ps(block->d, dx), total[c]);
                minima[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(below), _mm256_mul_ps(block->dmin, dx), minima[c]);
            }
        }
    }
    for (std::size_t c = 0; c < tile_columns; ++c) {
        _mm256_storeu_ps(y + c * ldy, _mm256_sub_ps(total[c], minima[c]));
    }
}

}  // namespace

BlockPlan q4_K_gemm_plan(std::size_t k) {
    const std::size_t blocks = interleaved_rows / group_rows * (k / super_block);
    return {interleaved_rows, SIZE_MAX, blocks * sizeof(GroupBlock) / sizeof(float) + 16};
}

// n % 4 == 0, rows % 8 == 0
void q4_K_gemm_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                     float *y, std::size_t ldy, float *scratch) {
    const std::size_t blocks = k / super_block, row = blocks * q4_K_bytes;
    GroupBlock *packed = reinterpret_cast<GroupBlock *>(on_a_line(scratch));
    for (std::size_t r = 0; r < rows; r += group_rows) {
        for (std::size_t b = 0; b < blocks; ++b) {
            interleave_group(w + r * row + b * q4_K_bytes, row, packed[r / group_rows * blocks + b]);
        }
    }
    for (std::size_t c = 0; c < n; c += tile_columns) {
        for (std::size_t r = 0; r < rows; r += group_rows) {
            multiply_group(packed + r / group_rows * blocks, blocks, columns + c, y + c * ldy + r, ldy);
        }
    }
}

}  // namespace bankml::avx2
