// The panels of iqp.cpp in AVX2 for many columns: eight rows of weights side by side, one a lane; see
// portable::panel_rows.
#pragma once
#include "formats/avx2_interleaved.h"
#include "formats/avx2_super_blocks.h"

namespace bankml {
namespace {

// Eight rows' blocks of 256 weights: part after part, and the scales of 16 values each in both halves of a lane.
struct alignas(32) PanelBlock {
    __m256i value[8][8], scale[16];
    __m256 d;
};

inline BlockPlan interleaved_panel_plan(std::size_t k) {
    const std::size_t blocks = interleaved_rows / group_rows * (k / super_block);
    return {interleaved_rows, SIZE_MAX, blocks * sizeof(PanelBlock) / sizeof(float) + 16};
}

template <class Codec>
void interleave_panel(const std::uint8_t *w, std::size_t row, PanelBlock &to) {
    alignas(32) std::uint32_t scale[16][8];
    alignas(32) float d[8];
    for (std::size_t i = 0; i < group_rows; ++i) {
        UnpackedBlock unpacked;
        Codec::unpack(w + i * row, unpacked);
        d[i] = Codec::scale(w + i * row);
        for (std::size_t part = 0; part < 8; ++part) {
            to.value[part][i] = unpacked.value[part];
            scale[2 * part][i] = std::uint16_t(_mm256_extract_epi16(unpacked.scale[part], 0)) * 0x10001u;
            scale[2 * part + 1][i] = std::uint16_t(_mm256_extract_epi16(unpacked.scale[part], 8)) * 0x10001u;
        }
    }
    for (std::size_t part = 0; part < 8; ++part) {
        interleave(to.value[part]);
        to.scale[2 * part] = load_bytes(scale[2 * part]);
        to.scale[2 * part + 1] = load_bytes(scale[2 * part + 1]);
    }
    to.d = _mm256_load_ps(d);
}

// Eight rows by C columns of one block.
template <std::size_t C>
inline void panel_sums(const PanelBlock &block, const Q8KColumn *x, std::size_t b, __m256i *sum) {
    for (std::size_t c = 0; c < C; ++c) {
        sum[c] = _mm256_setzero_si256();
    }
    for (std::size_t part = 0; part < 8; ++part) {
        for (std::size_t g = 0; g < 8; ++g) {
            const __m256i value = block.value[part][g], size = _mm256_sign_epi8(value, value);
            const __m256i scale = block.scale[2 * part + g / 4];
            for (std::size_t c = 0; c < C; ++c) {
                const __m256i q = four_values(x[c].q + b * super_block + part * 32 + g * 4);
                const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(q, value));
                sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs, scale));
            }
        }
    }
}

// rows % 8 == 0
template <class Codec>
void panel_block(const std::uint8_t *w, std::size_t rows, std::size_t k, const Q8KColumn *columns, std::size_t n,
                 float *y, std::size_t ldy, float *scratch) {
    const std::size_t blocks = k / super_block, row = blocks * Codec::bytes;
    PanelBlock *packed = reinterpret_cast<PanelBlock *>(on_a_line(scratch));
    for (std::size_t r = 0; r < rows; r += group_rows) {
        for (std::size_t b = 0; b < blocks; ++b) {
            interleave_panel<Codec>(w + r * row + b * Codec::bytes, row, packed[r / group_rows * blocks + b]);
        }
    }
    for_columns<4>(n, [&]<std::size_t C>(std::size_t first) {
        const Q8KColumn *x = columns + first;
        for (std::size_t r = 0; r < rows; r += group_rows) {
            const PanelBlock *block = packed + r / group_rows * blocks;
            __m256 total[C];
            for (__m256 &t : total) {
                t = _mm256_setzero_ps();
            }
            for (std::size_t b = 0; b < blocks; ++b, ++block) {
                __m256i sum[C];
                panel_sums<C>(*block, x, b, sum);
                for (std::size_t c = 0; c < C; ++c) {
                    const __m256 d = _mm256_mul_ps(block->d, _mm256_set1_ps(x[c].d[b]));
                    total[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c]), d, total[c]);
                }
            }
            for (std::size_t c = 0; c < C; ++c) {
                _mm256_storeu_ps(y + (first + c) * ldy + r, total[c]);
            }
        }
    });
}

}  // namespace
}  // namespace bankml
