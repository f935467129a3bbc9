// IQ2 and IQ3 types in AVX2; see portable.h.
#pragma once
#include "formats/avx2_super_blocks.h"
#include "formats/iq/part.h"

namespace bankml {
namespace {

inline __m256i four_groups(const std::uint64_t *groups) { return load_bytes(groups); }

inline __m256i two_scales(int low, int high) {
    return _mm256_set_m128i(_mm_set1_epi16(std::int16_t(high)), _mm_set1_epi16(std::int16_t(low)));
}

template <class Codec>
struct IqCodec {
    static constexpr std::size_t bytes = Codec::bytes;
    static constexpr bool with_sign = true;
    static float scale(const std::uint8_t *block) { return half_at(block) * Codec::factor; }
    static void unpack(const std::uint8_t *block, UnpackedBlock &to) {
        for (std::size_t part = 0; part < 8; ++part) {
            const IqPart read = Codec::read_part(block, part);
            std::uint8_t signs[4];
            std::memcpy(signs, &read.signs, 4);
            const __m256i minus = load_bits(signs), sizes = four_groups(read.groups);
            to.value[part] = _mm256_sub_epi8(_mm256_xor_si256(sizes, minus), minus);
            to.scale[part] = two_scales(read.scales[0], read.scales[1]);
        }
    }
};

template <class Codec>
void iq_lanes_rows(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                   float *y, std::size_t ldy) {
    struct Unscaled : IqCodec<Codec> {
        static float scale(const std::uint8_t *block) { return half_at(block); }
    };
    super_lanes_rows<Unscaled>(w, rows, k, columns, n, y, ldy);
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < rows; ++r) {
            y[c * ldy + r] *= Codec::factor;
        }
    }
}

}  // namespace
}  // namespace bankml
