// Products over blocks of 32 weights in AVX2; see blocks.h. A codec has `bytes`, `load(block)`, 32 bytes, and
// `scale(block)`; where a block has a minimum, `minimum(block)`.
#pragma once
#include <algorithm>
#include <cmath>

#include "formats/format.h"
#include "kernels/avx2/bytes.h"

namespace bankml {
namespace {

inline constexpr std::size_t small_block = 32;

inline float half_at(const std::uint8_t *p) { return widen_one(block_scale(p)); }

// Low nibbles are the first half of a block, high nibbles the second.
inline __m256i load_nibbles(const std::uint8_t *packed) {
    const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(packed)));
    const __m256i shifted = _mm256_srlv_epi64(both, _mm256_setr_epi64x(0, 0, 4, 4));
    return _mm256_and_si256(shifted, _mm256_set1_epi8(15));
}

// 32 bits to 32 bytes: 0xff where the bit is 1.
inline __m256i load_bits(const std::uint8_t *bits) {
    std::int32_t word;
    std::memcpy(&word, bits, 4);
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                                            3, 3, 3, 3, 3, 3, 3);
    const __m256i each = _mm256_set1_epi64x(std::int64_t(0x8040201008040201ull));
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), each), each);
}

// Sixteen sums of two products of signed bytes.
inline __m256i signed_pairs(__m256i w, __m256i q) {
    return _mm256_maddubs_epi16(_mm256_sign_epi8(w, w), _mm256_sign_epi8(q, w));
}

inline __m256i pairs_to_fours(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

// The sum of 32 products of signed bytes, -128 among them.
inline std::int32_t exact_sum(__m256i w, __m256i q) {
    const __m256i low = _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(w)),
                                          _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q)));
    const __m256i high = _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm256_extracti128_si256(w, 1)),
                                           _mm256_cvtepi8_epi16(_mm256_extracti128_si256(q, 1)));
    return sum_all(_mm256_add_epi32(low, high));
}

// Each nibble's entry of a table of sixteen bytes.
inline __m256i look_up(const std::int8_t *table, __m256i nibbles) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i *>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), nibbles);
}

// The f16 scales of eight rows' blocks, `row` bytes apart.
inline __m256 half_scales(const std::uint8_t *w, std::size_t row) {
    std::uint64_t four[2];
    for (std::size_t i = 0; i < 2; ++i, w += 4 * row) {
        four[i] = block_scale(w) | std::uint64_t(block_scale(w + row)) << 16 |
                  std::uint64_t(block_scale(w + 2 * row)) << 32 | std::uint64_t(block_scale(w + 3 * row)) << 48;
    }
    return _mm256_cvtph_ps(_mm_set_epi64x(std::int64_t(four[1]), std::int64_t(four[0])));
}

// Calls tile.template operator()<C>(first) for columns [first, first + C), C at most `most` (4 or 8).
template <std::size_t most, class Tile>
inline void for_columns(std::size_t n, const Tile &tile) {
    std::size_t c = 0;
    for (; c + most <= n; c += most) {
        tile.template operator()<most>(c);
    }
    if constexpr (most > 4) {
        if (n - c >= 4) {
            tile.template operator()<4>(c);
            c += 4;
        }
    }
    switch (n - c) {
        case 1: return tile.template operator()<1>(c);
        case 2: return tile.template operator()<2>(c);
        case 3: return tile.template operator()<3>(c);
        default: return;
    }
}

// portable::lanes_rows
template <class Codec>
void lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy) {
    const std::size_t blocks = k / small_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * Codec::bytes) {
        for_columns<8>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                const __m256i value = Codec::load(block), size = _mm256_sign_epi8(value, value);
                const float scale = Codec::scale(block);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8Column &x = columns[first + c];
                    const __m256i q = _mm256_sign_epi8(load_bytes(x.q + b * small_block), value);
                    const __m256 fours = _mm256_cvtepi32_ps(pairs_to_fours(_mm256_maddubs_epi16(size, q)));
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(scale * x.d[b]), fours, acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]);
            }
        });
    }
}

// portable::pairs_rows
template <class Codec>
void pairs_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy) {
    const std::size_t blocks = k / small_block, paired = blocks / 2 * 2;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * Codec::bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C][2];
            for (auto &a : acc) {
                a[0] = a[1] = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < paired; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                const __m256i value = Codec::load(block);
                const float scale = Codec::scale(block);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8Column &x = columns[first + c];
                    const __m256i pairs = signed_pairs(value, load_bytes(x.q + b * small_block));
                    const __m256 fours = _mm256_cvtepi32_ps(pairs_to_fours(pairs));
                    acc[c][b % 2] = _mm256_fmadd_ps(_mm256_set1_ps(x.d[b] * scale), fours, acc[c][b % 2]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                const Q8Column &x = columns[first + c];
                float total = sum_halves(_mm256_add_ps(acc[c][0], acc[c][1]));
                if (paired < blocks) {
                    const std::uint8_t *block = w + paired * Codec::bytes;
                    const __m256i value = Codec::load(block), q = load_bytes(x.q + paired * small_block);
                    total = std::fma(x.d[paired] * Codec::scale(block), float(exact_sum(value, q)), total);
                }
                y[(first + c) * ldy + r] = total;
            }
        });
    }
}

// portable::minimum_rows
template <class Codec>
void minimum_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8_1Column *columns, std::size_t n,
                  float *y, std::size_t ldy) {
    const std::size_t blocks = k / small_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * Codec::bytes) {
        for_columns<8>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            float minima[C] = {};
            for (__m256 &a : acc) {
                a = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                const __m256i value = Codec::load(block);
                const float scale = Codec::scale(block), minimum = Codec::minimum(block);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8_1Column &x = columns[first + c];
                    minima[c] = std::fma(minimum, x.s[b], minima[c]);
                    const __m256i pairs = _mm256_maddubs_epi16(value, load_bytes(x.q + b * small_block));
                    const __m256 fours = _mm256_cvtepi32_ps(pairs_to_fours(pairs));
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(scale * x.d[b]), fours, acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                y[(first + c) * ldy + r] = sum_halves(acc[c]) + minima[c];
            }
        });
    }
}

// The sums of eight rows, each of eight integers, in the rows' order.
inline __m256i sum_rows(const __m256i row[8]) {
    const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(row[0], row[1]), _mm256_hadd_epi32(row[2], row[3]));
    const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(row[4], row[5]), _mm256_hadd_epi32(row[6], row[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

// The same of sixteen 16-bit sums a row, whose sum has 16 bits as well.
inline __m256i sum_short_rows(const __m256i row[8]) {
    const __m256i a = _mm256_hadd_epi16(_mm256_hadd_epi16(row[0], row[1]), _mm256_hadd_epi16(row[2], row[3]));
    const __m256i b = _mm256_hadd_epi16(_mm256_hadd_epi16(row[4], row[5]), _mm256_hadd_epi16(row[6], row[7]));
    const __m256i c = _mm256_hadd_epi16(a, b);
    return _mm256_cvtepi16_epi32(_mm_add_epi16(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1)));
}

// Eight rows' sums of the products of one block.
template <class Codec>
inline __m256i block_sums(const __m256i value[8], __m256i q) {
    __m256i row[8];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
        const __m256i pairs = signed_pairs(value[i], q);
        row[i] = Codec::short_sums ? pairs : pairs_to_fours(pairs);
    }
    return Codec::short_sums ? sum_short_rows(row) : sum_rows(row);
}

// The same of codes without sign, which are too large by Codec::offset, and activations without -128 whose sum is
// `sum`.
template <class Codec>
inline __m256i code_sums(const __m256i code[8], __m256i q, std::int32_t sum) {
    __m256i row[8];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
        row[i] = _mm256_maddubs_epi16(code[i], q);
    }
    const __m256i a = _mm256_hadd_epi16(_mm256_hadd_epi16(row[0], row[1]), _mm256_hadd_epi16(row[2], row[3]));
    const __m256i b = _mm256_hadd_epi16(_mm256_hadd_epi16(row[4], row[5]), _mm256_hadd_epi16(row[6], row[7]));
    const __m256i c = _mm256_hadd_epi16(a, b);  // half a block fits 16 bits
    const __m256i whole = _mm256_add_epi32(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(c)),
                                           _mm256_cvtepi16_epi32(_mm256_extracti128_si256(c, 1)));
    return _mm256_sub_epi32(whole, _mm256_set1_epi32(Codec::offset * sum));
}

// portable::chain_rows, eight rows side by side (rows % 8 == 0), C columns. `short_sums`: the sum of a block fits 16
// bits.
template <class Codec, bool codes, std::size_t C>
inline void chain_tile(const std::uint8_t *w, std::size_t blocks, const Q8Column *x, float *y, std::size_t ldy) {
    const std::size_t row = blocks * Codec::bytes;
    __m256 acc[C];
    for (__m256 &a : acc) {
        a = _mm256_setzero_ps();
    }
    for (std::size_t b = 0; b < blocks; ++b) {
        __m256i value[8];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) {
            const std::uint8_t *block = w + i * row + b * Codec::bytes;
            value[i] = codes ? Codec::load_codes(block) : Codec::load(block);
        }
        const __m256 scales = Codec::scales(w + b * Codec::bytes, row);
        for (std::size_t c = 0; c < C; ++c) {
            const __m256i q = load_bytes(x[c].q + b * small_block);
            const __m256i sums = codes ? code_sums<Codec>(value, q, x[c].sum[b]) : block_sums<Codec>(value, q);
            acc[c] =
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_mul_ps(scales, _mm256_set1_ps(x[c].d[b])), acc[c]);
        }
    }
    for (std::size_t c = 0; c < C; ++c) {
        _mm256_storeu_ps(y + c * ldy, acc[c]);
    }
}

template <class Codec>
void chain_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n,
                float *y, std::size_t ldy) {
    const std::size_t blocks = k / small_block;
    const bool codes = Codec::offset && std::all_of(columns, columns + n, [](const Q8Column &x) { return x.finite; });
    for (std::size_t r = 0; r < rows; r += 8, w += 8 * blocks * Codec::bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            float *out = y + first * ldy + r;
            if constexpr (Codec::offset != 0) {
                if (codes) {
                    return chain_tile<Codec, true, C>(w, blocks, columns + first, out, ldy);
                }
            }
            chain_tile<Codec, false, C>(w, blocks, columns + first, out, ldy);
        });
    }
}

}  // namespace
}  // namespace bankml
