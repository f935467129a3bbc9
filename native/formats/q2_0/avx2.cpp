// The Q2_0 product in AVX2: a register holds one word of eight interleaved rows.
#include <cmath>

#include "formats/avx2_blocks.h"
#include "formats/interleaved_avx2.h"
#include "formats/q2_0/q2_0.h"

namespace bankml::avx2 {
namespace {

using interleaved::word_bytes;

// The sums of code * q over 32 values of each of C columns, for R registers of eight rows: two words of codes, each of
// which gives four codes at once for every of its four shifts. Pairs are at most 2 * 3 * 128, eight of them fit into 16
// bits. A column's values are `q[c] + at`.
template <std::size_t R, std::size_t C>
inline void code_sums(const std::uint8_t *w, const std::int8_t *const *q, std::size_t at, __m256i (&sums)[C][R]) {
    const __m256i two_bits = _mm256_set1_epi8(3);
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t, w += word_bytes) {
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) {
            __m256i values[C];
#pragma GCC unroll 2
            for (std::size_t c = 0; c < C; ++c) {
                std::int32_t four;
                std::memcpy(&four, q[c] + at + t * 16 + s * 4, 4);
                values[c] = _mm256_set1_epi32(four);
            }
#pragma GCC unroll 4
            for (std::size_t r = 0; r < R; ++r) {
                const __m256i words = load_bytes(w + r * 32);
                const __m256i codes = _mm256_and_si256(s ? _mm256_srli_epi32(words, 2 * s) : words, two_bits);
#pragma GCC unroll 2
                for (std::size_t c = 0; c < C; ++c) {
                    const __m256i pairs = _mm256_maddubs_epi16(codes, values[c]);
                    sums[c][r] = t == 0 && s == 0 ? pairs : _mm256_add_epi16(sums[c][r], pairs);
                }
            }
        }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 2
        for (std::size_t c = 0; c < C; ++c) {
            sums[c][r] = pairs_to_fours(sums[c][r]);
        }
    }
}

// R registers of eight rows of a group, from its register `first` on, against C columns.
template <std::size_t R, std::size_t C>
void multiply_registers(const std::uint8_t *w, std::size_t first, std::size_t blocks, const Q8Column *columns, float *y,
                        std::size_t ldy) {
    const std::int8_t *q[C];
    __m256 acc[C][R];
#pragma GCC unroll 2
    for (std::size_t c = 0; c < C; ++c) {
        q[c] = columns[c].q;
#pragma GCC unroll 4
        for (std::size_t r = 0; r < R; ++r) {
            acc[c][r] = _mm256_setzero_ps();
        }
    }
    for (std::size_t b = 0; b < blocks; ++b, w += interleaved::block_bytes) {
        prefetch_block<_MM_HINT_T0>(w);
        __m256 part[C][R];
#pragma GCC unroll 2
        for (std::size_t h = 0; h < 2; ++h) {
            __m256i sums[C][R];
            code_sums<R, C>(w + h * 2 * word_bytes + first * 32, q, b * q2_0_weights + h * 32, sums);
#pragma GCC unroll 2
            for (std::size_t c = 0; c < C; ++c) {
                const __m256i sum = _mm256_set1_epi32(columns[c].sum[b * 2 + h]);  // a code stands for code - 1
                const __m256 d = _mm256_set1_ps(columns[c].d[b * 2 + h]);
#pragma GCC unroll 4
                for (std::size_t r = 0; r < R; ++r) {
                    const __m256 whole = _mm256_cvtepi32_ps(_mm256_sub_epi32(sums[c][r], sum));
                    part[c][r] = h == 0 ? _mm256_mul_ps(d, whole) : _mm256_fmadd_ps(d, whole, part[c][r]);
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
            _mm256_storeu_ps(y + c * ldy + (first + r) * 8, acc[c][r]);
        }
    }
}

// Eight bytes of two-bit codes to 32 bytes.
inline __m256i spread_codes(const std::uint8_t *codes) {
    std::int64_t eight;
    std::memcpy(&eight, codes, 8);
    const __m256i bytes = _mm256_set1_epi64x(eight);
    const __m256i quad = _mm256_shuffle_epi8(bytes, _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4,
                                                                     4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7));
    // Within each 32-bit lane byte i needs a shift by 2 i; words are shifted, and masks keep each byte's own bits.
    const __m256i low = _mm256_and_si256(quad, _mm256_set1_epi32(0x00000003));
    const __m256i second = _mm256_and_si256(_mm256_srli_epi32(quad, 2), _mm256_set1_epi32(0x00000300));
    const __m256i third = _mm256_and_si256(_mm256_srli_epi32(quad, 4), _mm256_set1_epi32(0x00030000));
    const __m256i fourth = _mm256_and_si256(_mm256_srli_epi32(quad, 6), _mm256_set1_epi32(0x03000000));
    return _mm256_or_si256(_mm256_or_si256(low, second), _mm256_or_si256(third, fourth));
}

}  // namespace

void q2_0_rest(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q2_0_weights;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q2_0_block_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            const Q8Column &x = columns[c];
            float total = 0.0f;
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * q2_0_block_bytes;
                const std::int8_t *q = x.q + b * q2_0_weights;
                const __m256i low = _mm256_maddubs_epi16(spread_codes(block + 2), load_bytes(q));
                const __m256i high = _mm256_maddubs_epi16(spread_codes(block + 10), load_bytes(q + 32));
                const std::int32_t one = sum_all(pairs_to_fours(low)) - x.sum[b * 2];
                const std::int32_t two = sum_all(pairs_to_fours(high)) - x.sum[b * 2 + 1];
                const float part = std::fma(x.d[b * 2 + 1], float(two), x.d[b * 2] * float(one));
                total = std::fma(widen_one(block_scale(block)), part, total);
            }
            y[c * ldy + r] = total;
        }
    }
}

void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q2_0_weights, group = blocks * interleaved::block_bytes;
    std::size_t r = 0;
    for (; r + interleaved::group_rows <= rows; r += interleaved::group_rows, w += group) {
        std::size_t c = 0;
        for (; c + 2 <= n; c += 2) {
            multiply_registers<2, 2>(w, 0, blocks, columns + c, y + c * ldy + r, ldy);
            multiply_registers<2, 2>(w, 2, blocks, columns + c, y + c * ldy + r, ldy);
        }
        if (c < n) {
            multiply_registers<4, 1>(w, 0, blocks, columns + c, y + c * ldy + r, ldy);
        }
    }
    q2_0_rest(w, rows - r, k, columns, n, y + r, ldy);
}

}  // namespace bankml::avx2
