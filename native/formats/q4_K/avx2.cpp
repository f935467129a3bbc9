// The Q4_K products in AVX2.
#include "formats/q4_K/q4_K.h"

#include "formats/avx2_super_blocks.h"

namespace bankml::avx2 {
namespace {

struct Block {
    UnpackedBlock unpacked;
    __m128i scales;
    float d, dmin;

    explicit Block(const std::uint8_t *block)
        : scales(unpack_scales(block + 4)), d(half_at(block)), dmin(half_at(block + 2)) {
        spread_scales(scales, unpacked.scale);
#pragma GCC unroll 8
        for (int pair = 0; pair < 4; ++pair) {
            const __m256i nibbles = load_bytes(block + 16 + pair * 32), four = _mm256_set1_epi8(15);
            unpacked.value[2 * pair] = _mm256_and_si256(nibbles, four);
            unpacked.value[2 * pair + 1] = _mm256_and_si256(_mm256_srli_epi16(nibbles, 4), four);
        }
    }
};

// The sums of each 64 products, four of them.
inline __m128 quarter_sums(const UnpackedBlock &block, const std::int8_t *q) {
    __m256i sum[4];
    for (int i = 0; i < 4; ++i) {
        sum[i] = _mm256_add_epi32(part_sums(block, q, 2 * i), part_sums(block, q, 2 * i + 1));
    }
    const __m256i four = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
    return _mm_cvtepi32_ps(_mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1)));
}

}  // namespace

void q4_K_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                     float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q4_K_bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C];
            __m128 minima[C];
            for (std::size_t c = 0; c < C; ++c) {
                acc[c] = _mm256_setzero_ps();
                minima[c] = _mm_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const Block block(w + b * q4_K_bytes);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8KColumn &x = columns[first + c];
                    const __m128 below = _mm_cvtepi32_ps(minima_sums(block.scales, x.sums + b * q8_K_sums));
                    minima[c] = _mm_fmadd_ps(_mm_set1_ps(-x.d[b] * block.dmin), below, minima[c]);
                    const __m256 sums = _mm256_cvtepi32_ps(lane_sums(block.unpacked, x.q + b * super_block));
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(x.d[b] * block.d), sums, acc[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                const __m128 m = _mm_add_ps(minima[c], _mm_movehl_ps(minima[c], minima[c]));
                const float below = _mm_cvtss_f32(_mm_add_ss(m, _mm_movehdup_ps(m)));
                y[(first + c) * ldy + r] = sum_halves(acc[c]) + below;
            }
        });
    }
}

// Eight rows side by side (rows % 8 == 0): the chains are vectors of eight.
void q4_K_gemv_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                    float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block, row = blocks * q4_K_bytes;
    for (std::size_t r = 0; r < rows; r += 8, w += 8 * row) {
        for (std::size_t c = 0; c < n; ++c) {
            const Q8KColumn &x = columns[c];
            __m256 total = _mm256_setzero_ps(), minima = total;
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *first = w + b * q4_K_bytes;
                __m256i sum[8];
                __m128i below[8];
                for (std::size_t i = 0; i < 8; ++i) {
                    const Block block(first + i * row);
                    sum[i] = lane_sums(block.unpacked, x.q + b * super_block);
                    below[i] = minima_sums(block.scales, x.sums + b * q8_K_sums);
                }
                const __m256i all = _mm256_set_m128i(sum_four_rows(below + 4), sum_four_rows(below));
                const __m256 dx = _mm256_set1_ps(x.d[b]);
                const __m256 d = _mm256_mul_ps(half_scales(first, row), dx);
                const __m256 dmin = _mm256_mul_ps(half_scales(first + 2, row), dx);
                total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum_rows(sum)), d, total);
                minima = _mm256_fmadd_ps(_mm256_cvtepi32_ps(all), dmin, minima);
            }
            _mm256_storeu_ps(y + c * ldy + r, _mm256_sub_ps(total, minima));
        }
    }
}

void q4_K_gemm_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                    float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * q4_K_bytes) {
        for (std::size_t first = 0; first < n; first += 4) {  // n % 4 == 0: one lane a column
            const Q8KColumn *x = columns + first;
            __m128 total = _mm_setzero_ps(), minima = _mm_setzero_ps();
            for (std::size_t b = 0; b < blocks; ++b) {
                const Block block(w + b * q4_K_bytes);
                __m128 sum[4], below[4];
                for (std::size_t c = 0; c < 4; ++c) {
                    sum[c] = quarter_sums(block.unpacked, x[c].q + b * super_block);
                    below[c] = _mm_cvtepi32_ps(minima_sums(block.scales, x[c].sums + b * q8_K_sums));
                }
                _MM_TRANSPOSE4_PS(sum[0], sum[1], sum[2], sum[3]);
                _MM_TRANSPOSE4_PS(below[0], below[1], below[2], below[3]);
                const __m128 dx = _mm_setr_ps(x[0].d[b], x[1].d[b], x[2].d[b], x[3].d[b]);
                const __m128 d = _mm_mul_ps(_mm_set1_ps(block.d), dx), dmin = _mm_mul_ps(_mm_set1_ps(block.dmin), dx);
                for (std::size_t i = 0; i < 4; ++i) {
                    total = _mm_fmadd_ps(sum[i], d, total);
                    minima = _mm_fmadd_ps(below[i], dmin, minima);
                }
            }
            alignas(16) float out[4];
            _mm_store_ps(out, _mm_sub_ps(total, minima));
            for (std::size_t c = 0; c < 4; ++c) {
                y[(first + c) * ldy + r] = out[c];
            }
        }
    }
}

}  // namespace bankml::avx2
