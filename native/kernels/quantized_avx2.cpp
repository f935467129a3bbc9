// The q8_0 quantizer and the Q1_0 and Q2_0 products in AVX2.
#include <cmath>

#include "kernels/quantized.h"
#include "kernels/vector_avx2.h"

namespace bankml::avx2 {
namespace {

// Eight sums of four neighbouring bytes.
inline __m256i sum_fours(__m256i bytes) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
}

inline std::int32_t sum_all(__m256i v) {
    const __m128i t = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i u = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(u, _mm_shuffle_epi32(u, 0xb1)));
}

inline __m256i load_bytes(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }

// 32 bits to 32 bytes: 0xff where the bit is 0.
inline __m256i absent_bits(const std::uint8_t *bits) {
    std::int32_t word;
    std::memcpy(&word, bits, 4);
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3,
                                            3, 3, 3, 3, 3);
    const __m256i each = _mm256_set1_epi64x(std::int64_t(0x8040201008040201ull));
    const __m256i picked = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), each);
    return _mm256_cmpeq_epi8(picked, _mm256_setzero_si256());
}

// Eight bytes of two-bit codes to 32 bytes.
inline __m256i spread_codes(const std::uint8_t *codes) {
    std::int64_t eight;
    std::memcpy(&eight, codes, 8);
    const __m256i bytes = _mm256_set1_epi64x(eight);
    const __m256i quad = _mm256_shuffle_epi8(bytes, _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4,
                                                                    5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7));
    // Within each 32-bit lane byte i needs a shift by 2 i; words are shifted, and masks keep each byte's own bits.
    const __m256i low = _mm256_and_si256(quad, _mm256_set1_epi32(0x00000003));
    const __m256i second = _mm256_and_si256(_mm256_srli_epi32(quad, 2), _mm256_set1_epi32(0x00000300));
    const __m256i third = _mm256_and_si256(_mm256_srli_epi32(quad, 4), _mm256_set1_epi32(0x00030000));
    const __m256i fourth = _mm256_and_si256(_mm256_srli_epi32(quad, 6), _mm256_set1_epi32(0x03000000));
    return _mm256_or_si256(_mm256_or_si256(low, second), _mm256_or_si256(third, fourth));
}

}  // namespace

void quantize_q8(std::size_t n, const float *x, std::int8_t *q, float *d, std::int32_t *sum) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (std::size_t block = 0; block < n / q8_0_values; ++block, x += q8_0_values, q += q8_0_values) {
        __m256 v[4];
        for (int i = 0; i < 4; ++i) {
            v[i] = _mm256_loadu_ps(x + i * 8);
        }
        __m256 peaks = _mm256_andnot_ps(sign, v[0]);
        for (int i = 1; i < 4; ++i) {
            peaks = _mm256_max_ps(peaks, _mm256_andnot_ps(sign, v[i]));
        }
        __m128 four = _mm_max_ps(_mm256_extractf128_ps(peaks, 1), _mm256_castps256_ps128(peaks));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        const float peak = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
        const float inverse = peak != 0.0f ? 127.0f / peak : 0.0f;
        d[block] = widen_one(_cvtss_sh(peak / 127.0f, _MM_FROUND_TO_NEAREST_INT));
        __m256i whole[4];
        for (int i = 0; i < 4; ++i) {
            whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
        }
        const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3]));
        const __m256i bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(q), bytes);
        sum[block] = sum_all(sum_fours(bytes));
    }
}

void q1_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q1_0_weights;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * quantized_block_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            __m256 acc = _mm256_setzero_ps();
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * quantized_block_bytes;
                __m256 part = _mm256_setzero_ps();
                for (std::size_t j = 0; j < 4; ++j) {
                    const __m256i absent = absent_bits(block + 2 + j * 4);
                    const __m256i q = load_bytes(columns[c].q + b * q1_0_weights + j * 32);
                    const __m256i signed_q = _mm256_sub_epi8(_mm256_xor_si256(q, absent), absent);
                    const __m256 four = _mm256_cvtepi32_ps(sum_fours(signed_q));
                    const __m256 d = _mm256_set1_ps(columns[c].d[b * 4 + j]);
                    part = j == 0 ? _mm256_mul_ps(d, four) : _mm256_fmadd_ps(d, four, part);
                }
                acc = _mm256_fmadd_ps(_mm256_set1_ps(widen_one(block_scale(block))), part, acc);
            }
            y[c * ldy + r] = sum_halves(acc);
        }
    }
}

void q1_0_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
                std::size_t ldy, float *) {
    q1_0_rows(w, rows, k, columns, n, y, ldy);
}

std::size_t q1_0_block_scratch(std::size_t, std::size_t) { return 0; }

void q2_0_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8Column *columns, std::size_t n, float *y,
               std::size_t ldy) {
    const std::size_t blocks = k / q2_0_weights;
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t r = 0; r < rows; ++r, w += blocks * quantized_block_bytes) {
        for (std::size_t c = 0; c < n; ++c) {
            float total = 0.0f;
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * quantized_block_bytes;
                float part = 0.0f;
                for (std::size_t j = 0; j < 2; ++j) {
                    const __m256i q = load_bytes(columns[c].q + b * q2_0_weights + j * 32);
                    const __m256i pairs = _mm256_maddubs_epi16(spread_codes(block + 2 + j * 8), q);
                    const std::int32_t whole = sum_all(_mm256_madd_epi16(pairs, ones)) - columns[c].sum[b * 2 + j];
                    part = std::fma(columns[c].d[b * 2 + j], float(whole), part);
                }
                total = std::fma(widen_one(block_scale(block)), part, total);
            }
            y[c * ldy + r] = total;
        }
    }
}

}  // namespace bankml::avx2
