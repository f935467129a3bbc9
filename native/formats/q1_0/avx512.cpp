// The Q1_0 product in AVX-512 (VL, BW, DQ, VBMI, VNNI).
#include <immintrin.h>

#include <algorithm>

#include "formats/q1_0/q1_0.h"
#include "kernels/avx2/vector.h"

namespace bankml::avx512 {
namespace {

// Columns that share the unpacked weights; their accumulators stay in registers.
constexpr std::size_t q1_0_columns = 4;

// Two rows' scales, eight lanes each.
inline __m512 two_scales(const std::uint8_t *a, const std::uint8_t *b) {
    const std::uint32_t both = block_scale(a) | std::uint32_t(block_scale(b)) << 16;
    const __m128 wide = _mm_cvtph_ps(_mm_cvtsi32_si128(std::int32_t(both)));
    const __m512i place = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    return _mm512_permutexvar_ps(place, _mm512_castps128_ps512(wide));
}

inline __mmask64 absent_bits(const std::uint8_t *a, const std::uint8_t *b) {
    std::uint32_t low, high;
    std::memcpy(&low, a, 4);
    std::memcpy(&high, b, 4);
    return _cvtu64_mask64(~(std::uint64_t(high) << 32 | low));
}

// Rows a and b (the same row twice when one is left) against C columns: a's eight lanes in the lower half, b's above.
template <std::size_t C>
inline void q1_0_pair(const std::uint8_t *a, const std::uint8_t *b, std::size_t blocks, const Q8Column *columns,
                      float *y, std::size_t ldy, bool both) {
    const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
    __m512 acc[C];
    for (auto &v : acc) {
        v = _mm512_setzero_ps();
    }
    for (std::size_t i = 0; i < blocks; ++i, a += q1_0_block_bytes, b += q1_0_block_bytes) {
        const __m512 scales = two_scales(a, b);
        __mmask64 absent[4];
        for (std::size_t j = 0; j < 4; ++j) {
            absent[j] = absent_bits(a + 2 + j * 4, b + 2 + j * 4);
        }
        for (std::size_t c = 0; c < C; ++c) {
            const std::int8_t *q = columns[c].q + i * q1_0_weights;
            const float *d = columns[c].d + i * 4;
            __m512 part = _mm512_setzero_ps();
            for (std::size_t j = 0; j < 4; ++j) {
                const __m512i value =
                    _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(q + j * 32)));
                const __m512i signed_value = _mm512_mask_sub_epi8(value, absent[j], zero, value);
                const __m512 four = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(zero, ones, signed_value));
                part = j == 0 ? _mm512_mul_ps(_mm512_set1_ps(d[j]), four)
                              : _mm512_fmadd_ps(_mm512_set1_ps(d[j]), four, part);
            }
            acc[c] = _mm512_fmadd_ps(scales, part, acc[c]);
        }
    }
    for (std::size_t c = 0; c < C; ++c) {
        y[c * ldy] = sum_halves(_mm512_castps512_ps256(acc[c]));
        if (both) {
            y[c * ldy + 1] = sum_halves(_mm512_extractf32x8_ps(acc[c], 1));
        }
    }
}

template <std::size_t C>
void q1_0_columns_of(const std::uint8_t *w, std::size_t rows, std::size_t blocks, const Q8Column *columns, float *y,
                     std::size_t ldy) {
    const std::size_t row = blocks * q1_0_block_bytes;
    for (std::size_t r = 0; r < rows; r += 2, w += 2 * row) {
        const bool both = r + 1 < rows;
        q1_0_pair<C>(w, both ? w + row : w, blocks, columns, y + r, ldy, both);
    }
}

}  // namespace

void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q1_0_weights;
    for (std::size_t c = 0; c < n; c += q1_0_columns) {
        float *out = y + c * ldy;
        switch (n - c) {
            case 1: q1_0_columns_of<1>(w, rows, blocks, columns + c, out, ldy); break;
            case 2: q1_0_columns_of<2>(w, rows, blocks, columns + c, out, ldy); break;
            case 3: q1_0_columns_of<3>(w, rows, blocks, columns + c, out, ldy); break;
            default: q1_0_columns_of<q1_0_columns>(w, rows, blocks, columns + c, out, ldy);
        }
    }
}

}  // namespace bankml::avx512
