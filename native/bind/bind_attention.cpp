// Rotary positions, K/V caches and attention, for model/.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/arrays.h"
#include "bind/bind.h"
#include "kernels/attention.h"
#include "kernels/cache_format.h"
#include "kernels/kernels.h"
#include "kernels/rope.h"

namespace nb = nanobind;
using namespace bankml;
using namespace bankml::bind;

namespace {

using OptionalVector = std::optional<ConstVector>;
using OptionalInt32s = std::optional<ConstInt32s>;

RopeShape with_factors(RopeShape shape, const OptionalVector &factors) {
    require(shape.rotated > 0 && shape.rotated % 2 == 0, "the rotated part of a head is pairs of values");
    if (factors) {
        require(factors->shape(0) == shape.rotated / 2, "RoPE has one factor for each pair of a head");
        shape.factors.assign(factors->data(), factors->data() + factors->shape(0));
    }
    return shape;
}

// The type that arrays of such elements are.
template <class AnyCache>
const CacheFormat &cache_format() {
    for (const CacheFormat &format : cache_formats()) {
        if (format.item_bytes == sizeof(typename AnyCache::Scalar)) {
            return format;
        }
    }
    throw std::invalid_argument("no K/V cache has elements of this size");
}

SequenceRows sequence_rows(std::size_t n, std::size_t position, std::size_t cells, const OptionalInt32s &places,
                           const OptionalInt32s &positions) {
    if (!places) {
        require(!positions, "cells that have positions need places for the rows");
        require(position + n <= cells, "the rows do not fit into the K/V cache");
        return rows_in_order(n, position, cells);
    }
    require(positions && places->shape(0) == n && positions->shape(0) <= cells, "the rows' places do not fit");
    const std::int32_t *first = places->data();
    const auto inside = [&](std::int32_t at) { return at >= 0 && std::size_t(at) < positions->shape(0); };
    require(std::all_of(first, first + n, inside), "a row's place is not among the cells");
    return {n, position, first, positions->data(), positions->shape(0)};
}

template <class AnyCache>
void check_attention(const AttentionShape &shape, const Rows &qkv, const AnyCache &k, const AnyCache &v,
                     std::size_t row, const Rows &out) {
    require(qkv.shape(1) == (shape.heads + 2 * shape.kv_heads) * shape.head_size && out.shape(0) == qkv.shape(0) &&
                out.shape(1) == shape.heads * shape.head_size,
            "the rows of Q, K and V do not fit the attention's heads");
    for (const AnyCache *c : {&k, &v}) {
        require(c->shape(0) == shape.kv_heads && c->shape(1) == shape.cells && c->shape(2) == row,
                "a K/V cache does not fit the attention's heads");
    }
}

template <class AnyCache>
void attend_layer(Pool &pool, const AttentionShape &shape, const Rows &qkv, std::size_t position, const AnyCache &k,
                  const AnyCache &v, const Rows &out, const OptionalInt32s &places, const OptionalInt32s &positions) {
    const CacheFormat &format = cache_format<AnyCache>();
    if (format.block_values > 1) {
        require(shape.head_size % format.block_values == 0 && shape.head_size <= max_q8_head,
                "a q8_0 K/V cache needs heads of whole blocks of 32 values, at most 256");
    }
    check_attention(shape, qkv, k, v, format.row_bytes(shape.head_size) / format.item_bytes, out);
    const SequenceRows rows = sequence_rows(qkv.shape(0), position, shape.cells, places, positions);
    format.attend(pool, shape, qkv.data(), qkv.shape(1), rows, k.data(), v.data(), out.data());
}

template <class AnyCache>
void bind_attend(nb::module_ &m) {
    m.def("attend", &attend_layer<AnyCache>, nb::arg("pool"), nb::arg("shape"), nb::arg("qkv").noconvert(),
          nb::arg("position"), nb::arg("k").noconvert(), nb::arg("v").noconvert(), nb::arg("out").noconvert(),
          nb::arg("places").noconvert() = nb::none(), nb::arg("positions").noconvert() = nb::none(), NoGil());
}

void bind_rope(nb::module_ &m) {
    nb::class_<RopeShape>(m, "RopeShape").def_ro("rotated", &RopeShape::rotated);
    m.def(
        "rope_plain",
        [](std::size_t rotated, float base, float attention_factor, float factor, const OptionalVector &factors) {
            return with_factors(rope_plain(rotated, base, attention_factor, factor), factors);
        },
        nb::arg("rotated"), nb::arg("base"), nb::arg("attention_factor"), nb::arg("factor") = 1.0f,
        nb::arg("factors").noconvert() = nb::none());
    m.def(
        "rope_yarn",
        [](std::size_t rotated, float base, float factor, std::size_t original_context, float attention_factor,
           float beta_fast, float beta_slow, float log_multiplier, const OptionalVector &factors) {
            const YarnScaling yarn{original_context, beta_fast, beta_slow, log_multiplier};
            return with_factors(rope_yarn(rotated, base, attention_factor, factor, yarn), factors);
        },
        nb::arg("rotated"), nb::arg("base"), nb::arg("factor"), nb::arg("original_context"),
        nb::arg("attention_factor"), nb::arg("beta_fast") = 32.0f, nb::arg("beta_slow") = 1.0f,
        nb::arg("log_multiplier") = 0.0f, nb::arg("factors").noconvert() = nb::none());
    m.def(
        "rope_table",
        [](const RopeShape &shape, std::size_t first, const Rows &table) {
            require(table.shape(1) == shape.rotated, "a RoPE table is as wide as the rotated part of a head");
            const NoGilForRows released(table.shape(0));
            rope_table(shape, first, table.shape(0), table.data());
        },
        nb::arg("shape"), nb::arg("first"), nb::arg("table").noconvert());
    m.def(
        "rope_rotate",
        [](Pool &pool, const Rows &table, bool neox, std::size_t heads, std::size_t head_size, const Rows &x) {
            require(table.shape(0) == x.shape(0) && table.shape(1) <= head_size && heads * head_size <= x.shape(1),
                    "a RoPE table does not fit the rows it turns");
            const NoGilForRows released(x.shape(0));
            rope_rotate(pool, table.data(), table.shape(1), neox, x.shape(0), heads, head_size, x.data(), x.shape(1));
        },
        nb::arg("pool"), nb::arg("table").noconvert(), nb::arg("neox"), nb::arg("heads"), nb::arg("head_size"), x_);
}

}  // namespace

void register_attention(nb::module_ &m) {
    bind_rope(m);
    nb::class_<AttentionShape>(m, "AttentionShape")
        .def(nb::init<std::size_t, std::size_t, std::size_t, float, std::size_t, std::size_t, float, std::size_t>(),
             nb::arg("heads"), nb::arg("kv_heads"), nb::arg("head_size"), nb::arg("scale"), nb::arg("cells"),
             nb::arg("llama_threads"), nb::arg("softcap") = 0.0f, nb::arg("window") = 0);
    // The same name twice: the cache's dtype, uint16 or uint8, says of which type it is.
    bind_attend<Cache>(m);
    bind_attend<Q8Cache>(m);
    m.def(
        "hadamard",
        [](const Rows &x) {
            const std::size_t n = x.shape(1);
            require(n >= 8 && (n & (n - 1)) == 0,
                    "a Hadamard matrix of this library is a power of two wide, from 8 on");
            for (std::size_t i = 0; i < x.shape(0); ++i) {
                kernels().hadamard(n, x.data() + i * n);
            }
        },
        x_, NoGil());
    nb::class_<CacheFormat>(m, "CacheFormat")
        .def_ro("name", &CacheFormat::name)
        .def_ro("block_values", &CacheFormat::block_values)
        .def_ro("block_bytes", &CacheFormat::block_bytes)
        .def_ro("item_bytes", &CacheFormat::item_bytes);
    m.def("cache_formats", [] {
        nb::list found;
        for (const CacheFormat &format : cache_formats()) {
            found.append(nb::cast(&format, nb::rv_policy::reference));
        }
        return found;
    });
}
