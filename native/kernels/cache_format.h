// The types that keys and values are kept in: one record a type.
#pragma once
#include <cstddef>
#include <span>

#include "kernels/attention.h"

namespace bankml {

struct CacheFormat {
    const char *name;
    std::size_t block_values, block_bytes;
    std::size_t item_bytes;  // of one element of the arrays it is kept in: which array is of which type
    // attend or attend_q8 (attention.h); k and v: [kv_heads][cells][row_bytes(head_size)]
    void (*attend)(Pool &pool, const AttentionShape &shape, const float *qkv, std::size_t ldqkv,
                   const SequenceRows &rows, void *k, void *v, float *out);

    std::size_t row_bytes(std::size_t head_size) const { return head_size / block_values * block_bytes; }
};

std::span<const CacheFormat> cache_formats();

}  // namespace bankml
