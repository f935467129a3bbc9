#include "kernels/cache_format.h"

#include "kernels/cache_q8.h"

namespace bankml {
namespace {

void attend_f16(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, const SequenceRows &rows,
                void *k, void *v, float *out) {
    attend(pool, shape, qkv, ldqkv, rows, static_cast<std::uint16_t *>(k), static_cast<std::uint16_t *>(v), out);
}

void attend_q8_0(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv, const SequenceRows &rows,
                 void *k, void *v, float *out) {
    attend_q8(pool, shape, qkv, ldqkv, rows, static_cast<std::uint8_t *>(k), static_cast<std::uint8_t *>(v), out);
}

constinit const CacheFormat formats[] = {
    {"f16", 1, 2, 2, attend_f16},
    {"q8_0", q8_0_values, q8_0_block_bytes, 1, attend_q8_0},
};

}  // namespace

std::span<const CacheFormat> cache_formats() { return formats; }

}  // namespace bankml
