// The Q2_0 product in AVX-512 (VL, BW, DQ, VBMI, VNNI): a register holds one word of sixteen rows.
#include <immintrin.h>

#include "formats/interleaved_avx512.h"
#include "formats/q2_0/q2_0.h"

namespace bankml::avx512 {
namespace {

using interleaved::word_bytes;

// Columns that share the weights' codes; their sums stay in registers.
constexpr std::size_t tile_columns = 4;

// The sums of code * q over 32 values of each column, for 32 rows: two words of codes, each of which gives four codes
// at once for every of its four shifts. A column's values are `q[c] + at`.
template <std::size_t C>
inline void code_sums(const std::uint8_t *w, const std::int8_t *const *q, std::size_t at, __m512i (&sums)[C][2]) {
    const __m512i two_bits = _mm512_set1_epi8(3);
    for (auto &column : sums) {
        column[0] = column[1] = _mm512_setzero_si512();
    }
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t, w += word_bytes) {
        const __m512i low = _mm512_loadu_si512(w), high = _mm512_loadu_si512(w + word_bytes / 2);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) {
            const __m512i a = _mm512_and_si512(s ? _mm512_srli_epi32(low, 2 * unsigned(s)) : low, two_bits);
            const __m512i z = _mm512_and_si512(s ? _mm512_srli_epi32(high, 2 * unsigned(s)) : high, two_bits);
#pragma GCC unroll 4
            for (std::size_t c = 0; c < C; ++c) {
                std::int32_t four;
                std::memcpy(&four, q[c] + at + t * 16 + s * 4, 4);
                const __m512i values = _mm512_set1_epi32(four);
                sums[c][0] = _mm512_dpbusd_epi32(sums[c][0], a, values);
                sums[c][1] = _mm512_dpbusd_epi32(sums[c][1], z, values);
            }
        }
    }
}

// A group of 32 rows against C columns.
template <std::size_t C>
void multiply_group(const std::uint8_t *w, std::size_t blocks, const Q8Column *columns, float *y, std::size_t ldy) {
    const std::int8_t *q[C];
    __m512 acc[C][2];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) {
        q[c] = columns[c].q;
        acc[c][0] = acc[c][1] = _mm512_setzero_ps();
    }
    for (std::size_t b = 0; b < blocks; ++b, w += interleaved::block_bytes) {
        prefetch_block<_MM_HINT_T0>(w);
        __m512 part[C][2];
#pragma GCC unroll 2
        for (std::size_t h = 0; h < 2; ++h) {
            __m512i sums[C][2];
            code_sums<C>(w + h * 2 * word_bytes, q, b * q2_0_weights + h * 32, sums);
#pragma GCC unroll 4
            for (std::size_t c = 0; c < C; ++c) {
                const __m512i sum = _mm512_set1_epi32(columns[c].sum[b * 2 + h]);  // a code stands for code - 1
                const __m512 d = _mm512_set1_ps(columns[c].d[b * 2 + h]);
#pragma GCC unroll 2
                for (int i = 0; i < 2; ++i) {
                    const __m512 whole = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[c][i], sum));
                    part[c][i] = h == 0 ? _mm512_mul_ps(d, whole) : _mm512_fmadd_ps(d, whole, part[c][i]);
                }
            }
        }
        const __m512 low = scales(w, 0), high = scales(w, 1);
#pragma GCC unroll 4
        for (std::size_t c = 0; c < C; ++c) {
            acc[c][0] = _mm512_fmadd_ps(low, part[c][0], acc[c][0]);
            acc[c][1] = _mm512_fmadd_ps(high, part[c][1], acc[c][1]);
        }
    }
#pragma GCC unroll 4
    for (std::size_t c = 0; c < C; ++c) {
        _mm512_storeu_ps(y + c * ldy, acc[c][0]);
        _mm512_storeu_ps(y + c * ldy + 16, acc[c][1]);
    }
}

}  // namespace

void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q2_0_weights, group = blocks * interleaved::block_bytes;
    std::size_t r = 0;
    for (; r + interleaved::group_rows <= rows; r += interleaved::group_rows, w += group) {
        std::size_t c = 0;
        for (; c + tile_columns <= n; c += tile_columns) {
            multiply_group<tile_columns>(w, blocks, columns + c, y + c * ldy + r, ldy);
        }
        switch (n - c) {
            case 1: multiply_group<1>(w, blocks, columns + c, y + c * ldy + r, ldy); break;
            case 2: multiply_group<2>(w, blocks, columns + c, y + c * ldy + r, ldy); break;
            case 3: multiply_group<3>(w, blocks, columns + c, y + c * ldy + r, ldy); break;
            default: break;
        }
    }
    avx2::q2_0_rest(w, rows - r, k, columns, n, y + r, ldy);
}

}  // namespace bankml::avx512
