// IQ1_S and IQ1_M in AVX2; see iq1_portable.h.
#pragma once
#include "formats/iq/avx2.h"
#include "formats/iq/iq1.h"

namespace bankml {
namespace {

inline __m256i eighth_signs(const bool *minus) {
    const std::int64_t plus_one = 0x0101010101010101;
    return _mm256_set_epi64x(minus[3] ? -1 : plus_one, minus[2] ? -1 : plus_one, minus[1] ? -1 : plus_one,
                             minus[0] ? -1 : plus_one);
}

template <class Codec>
struct Iq1Codec {
    static constexpr std::size_t bytes = Codec::bytes;
    static constexpr bool with_sign = true;
    static float scale(const std::uint8_t *block) { return widen_one(Codec::scale_bits(block)) * iq1_eighth; }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        UnpackedBlock eighths;
        split(block, to, eighths);
        for (std::size_t part = 0; part < 8; ++part) {
            // Eight times a value: its bytes have no bits that a shift of 16 would carry over.
            const __m256i two = _mm256_add_epi8(to.value[part], to.value[part]), four = _mm256_add_epi8(two, two);
            to.value[part] = _mm256_add_epi8(_mm256_add_epi8(four, four), eighths.value[part]);
        }
    }
    static void split(const std::uint8_t *block, UnpackedBlock &values, UnpackedBlock &eighths) {
        for (std::size_t part = 0; part < 8; ++part) {
            const Iq1Part read = Codec::read_part(block, part);
            values.value[part] = four_groups(read.groups);
            eighths.value[part] = eighth_signs(read.minus);
            values.scale[part] = eighths.scale[part] = two_scales(read.scales[0], read.scales[1]);
        }
    }
};

template <class Codec>
void iq1_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                    float *y, std::size_t ldy) {
    const std::size_t blocks = k / super_block;
    for (std::size_t r = 0; r < rows; ++r, w += blocks * Codec::bytes) {
        for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
            __m256 acc[C], eighth_acc[C];
            float chain[C] = {};
            for (std::size_t c = 0; c < C; ++c) {
                acc[c] = eighth_acc[c] = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b) {
                const std::uint8_t *block = w + b * Codec::bytes;
                const float scale = widen_one(Codec::scale_bits(block));
                UnpackedBlock values, eighths;
                Iq1Codec<Codec>::split(block, values, eighths);
                for (std::size_t c = 0; c < C; ++c) {
                    const Q8KColumn &x = columns[first + c];
                    const float d = x.d[b] * scale;
                    const __m256i sums = lane_sums<true>(values, x.q + b * super_block);
                    const __m256i eighth_sums = lane_sums<true>(eighths, x.q + b * super_block);
                    acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(sums), acc[c]);
                    if constexpr (Codec::one_chain) {
                        chain[c] = std::fma(d, float(sum_all(eighth_sums)), chain[c]);
                    } else {
                        const __m256 wide = _mm256_cvtepi32_ps(eighth_sums);
                        eighth_acc[c] = _mm256_fmadd_ps(_mm256_set1_ps(d), wide, eighth_acc[c]);
                    }
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                const float eighth = Codec::one_chain ? chain[c] : sum_halves(eighth_acc[c]);
                y[(first + c) * ldy + r] = std::fma(iq1_eighth, eighth, sum_halves(acc[c]));
            }
        });
    }
}

}  // namespace
}  // namespace bankml
