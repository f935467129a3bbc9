// The Q2_0 product in AVX-512 (VL, BW, DQ, VBMI, VNNI).
#include <immintrin.h>

#include <algorithm>

#include "formats/q2_0/q2_0.h"
#include "kernels/avx2/vector.h"

namespace bankml::avx512 {
namespace {

// Columns that share the unpacked weights; their accumulators stay in registers.
constexpr std::size_t q2_0_columns = 8;
// Rows that are computed side by side, one a lane.
constexpr std::size_t q2_0_lanes = 16;

// Sixteen rows' blocks of one index, unpacked: for each byte of codes its sixteen rows' four codes, and the scales.
struct Unpacked {
    __m512i codes[16];
    __m512 scales;
};

inline void unpack_rows(const std::uint8_t *w, std::size_t row, Unpacked &u) {
    alignas(64) std::uint16_t scale[q2_0_lanes];
    __m128i lane[16];
    for (std::size_t r = 0; r < q2_0_lanes; ++r) {
        scale[r] = block_scale(w + r * row);
        lane[r] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(w + r * row + 2));
    }
    u.scales = _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i *>(scale)));
    // Transpose 16 rows of 16 bytes, so that one register holds one byte of every row.
    for (int width = 0; width < 4; ++width) {
        __m128i next[16];
        for (int i = 0; i < 8; ++i) {
            next[2 * i] = _mm_unpacklo_epi8(lane[i], lane[i + 8]);
            next[2 * i + 1] = _mm_unpackhi_epi8(lane[i], lane[i + 8]);
        }
        std::copy(next, next + 16, lane);
    }
    // Each byte becomes four: the 64-bit lane holds two rows' bytes at bits 0 and 32.
    const __m512i shifts = _mm512_set1_epi64(0x2624222006040200);
    const __m512i two_bits = _mm512_set1_epi8(3);
    for (int t = 0; t < 16; ++t) {
        u.codes[t] = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, _mm512_cvtepu8_epi32(lane[t])), two_bits);
    }
}

// The sums of code * q over 32 values, sixteen rows side by side, less the block's own sum: code - 1.
inline __m512i block_sums(const __m512i codes[8], const std::int8_t *q, std::int32_t sum) {
    __m512i total = _mm512_set1_epi32(-sum), other = _mm512_setzero_si512();
    for (int t = 0; t < 8; t += 2) {
        std::int32_t first, second;
        std::memcpy(&first, q + t * 4, 4);
        std::memcpy(&second, q + t * 4 + 4, 4);
        total = _mm512_dpbusd_epi32(total, codes[t], _mm512_set1_epi32(first));
        other = _mm512_dpbusd_epi32(other, codes[t + 1], _mm512_set1_epi32(second));
    }
    return _mm512_add_epi32(total, other);
}

inline void q2_0_sixteen(const std::uint8_t *w, std::size_t blocks, const Q8Column *columns, std::size_t n, float *y,
                         std::size_t ldy) {
    const std::size_t row = blocks * q2_0_block_bytes;
    __m512 acc[q2_0_columns];
    for (auto &v : acc) {
        v = _mm512_setzero_ps();
    }
    const std::uint8_t *ahead = w + q2_0_lanes * row;  // past the array a prefetch does nothing
    for (std::size_t b = 0; b < blocks; ++b, w += q2_0_block_bytes) {
        // Sixteen rows are more streams than the hardware follows: the rows after these are asked for here, in their
        // order.
        for (std::size_t i = 0; i < q2_0_lanes * q2_0_block_bytes; i += 64, ahead += 64) {
            _mm_prefetch(reinterpret_cast<const char *>(ahead), _MM_HINT_T0);
        }
        Unpacked u;
        unpack_rows(w, row, u);
        for (std::size_t c = 0; c < n; ++c) {
            const std::int8_t *q = columns[c].q + b * q2_0_weights;
            const float *d = columns[c].d + b * 2;
            const std::int32_t *sum = columns[c].sum + b * 2;
            __m512 part = _mm512_mul_ps(_mm512_set1_ps(d[0]), _mm512_cvtepi32_ps(block_sums(u.codes, q, sum[0])));
            part = _mm512_fmadd_ps(_mm512_set1_ps(d[1]), _mm512_cvtepi32_ps(block_sums(u.codes + 8, q + 32, sum[1])),
                                   part);
            acc[c] = _mm512_fmadd_ps(u.scales, part, acc[c]);
        }
    }
    for (std::size_t c = 0; c < n; ++c) {
        _mm512_storeu_ps(y + c * ldy, acc[c]);
    }
}

}  // namespace

void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q2_0_weights, row = blocks * q2_0_block_bytes;
    const std::size_t whole = rows / q2_0_lanes * q2_0_lanes;
    for (std::size_t c = 0; c < n; c += q2_0_columns) {
        const std::size_t some = std::min(q2_0_columns, n - c);
        for (std::size_t r = 0; r < whole; r += q2_0_lanes) {
            q2_0_sixteen(w + r * row, blocks, columns + c, some, y + c * ldy + r, ldy);
        }
    }
    avx2::q2_0_rows(w + whole * row, rows - whole, k, columns, n, y + whole, ldy);
}

}  // namespace bankml::avx512
