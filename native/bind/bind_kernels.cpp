// The arithmetic for model/: a pool, matrices, and coarse operations on float32 arrays. What takes long releases the
// GIL.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "bind/bind.h"
#include "isa/instruction_set.h"
#include "kernels/attention.h"
#include "kernels/cache_format.h"
#include "kernels/kernels.h"
#include "kernels/pool.h"
#include "kernels/project.h"

namespace nb = nanobind;
using namespace bankml;

namespace {

using Rows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Halves = nb::ndarray<std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstHalves = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cache = nb::ndarray<std::uint16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Q8Cache = nb::ndarray<std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Int8s = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Int32s = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Tokens = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// An array of another dtype is refused, not converted: a converted output would be written and thrown away.
const auto x_ = nb::arg("x").noconvert(), y_ = nb::arg("y").noconvert(), weight_ = nb::arg("weight").noconvert();

using NoGil = nb::call_guard<nb::gil_scoped_release>;

// Lets the GIL go for several rows. One row of the small operations takes no longer than to hand the GIL over and, when
// two models answer at once, to get it back.
class NoGilForRows {
public:
    explicit NoGilForRows(std::size_t rows) {
        if (rows > 1) {
            released_.emplace();
        }
    }

private:
    std::optional<nb::gil_scoped_release> released_;
};

void require(bool true_of_shapes, const char *message) {
    if (!true_of_shapes) {
        throw std::invalid_argument(message);
    }
}

const WeightFormat &weight_format(int type) {
    const WeightFormat *format = find_weight_format(type);
    require(format != nullptr, "there is no such weight type");
    return *format;
}

// Matrices that meet the same activation, one behind the other in the output.
class Projection {
public:
    // parts: (type number, bytes, rows) of each matrix.
    Projection(std::shared_ptr<Pool> pool, std::size_t columns,
               const std::vector<std::tuple<int, Bytes, std::size_t>> &parts)
        : pool_(std::move(pool)) {
        require(!parts.empty(), "a projection has at least one matrix");
        for (const auto &[type, data, rows] : parts) {
            const WeightFormat &format = weight_format(type);
            require(columns > 0 && columns % format.block_weights == 0 && columns % format.activation->block == 0,
                    "a matrix's rows are not whole blocks");
            require(data.shape(0) == rows * format.row_bytes(columns), "a matrix's bytes do not fit its shape");
            matrices_.push_back({&format, data.data(), rows, columns});
            held_.push_back(data);
            rows_ += rows;
        }
    }

    // span: the rows that one sequence has in its micro-batch; none given: all of x is one sequence's.
    void apply(const Rows &x, const Rows &y, std::optional<std::size_t> span) const {
        check(x, y);
        project(*pool_, matrices_, x.data(), x.shape(0), checked_span(x, span), y.data(), y.shape(1));
    }

    // y += W x
    void add_to(const Rows &x, const Rows &y, std::optional<std::size_t> span) const {
        check(x, y);
        const std::size_t n = x.shape(0);
        float *products = pool_->shared(Pool::Shared::products, n * rows_);
        project(*pool_, matrices_, x.data(), n, checked_span(x, span), products, rows_);
        kernels().add(n * rows_, y.data(), products);
    }

private:
    static std::size_t checked_span(const Rows &x, std::optional<std::size_t> span) {
        const std::size_t n = x.shape(0), rows = span.value_or(n);
        require(n == 0 || (rows > 0 && n % rows == 0), "the rows are not whole spans");
        return rows;
    }

    void check(const Rows &x, const Rows &y) const {
        require(x.shape(1) == matrices_[0].columns && y.shape(1) == rows_ && x.shape(0) == y.shape(0),
                "a projection's input and output do not fit its matrices");
    }

    std::shared_ptr<Pool> pool_;
    std::vector<Matrix> matrices_;
    std::vector<Bytes> held_;  // keeps the weights' memory alive
    std::size_t rows_ = 0;
};

// The rows of the embedding matrix, widened.
class Embedding {
public:
    Embedding(int type, std::size_t columns, const Bytes &data)
        : format_(weight_format(type)), columns_(columns), row_bytes_(format_.row_bytes(columns)), held_(data) {
        require(columns > 0 && columns % format_.block_weights == 0, "an embedding's rows are not whole blocks");
        require(row_bytes_ > 0 && data.shape(0) % row_bytes_ == 0, "an embedding's bytes are not whole rows");
    }

    void look_up(const Tokens &tokens, const Rows &y) const {
        require(y.shape(0) == tokens.shape(0) && y.shape(1) == columns_, "an embedding's output does not fit");
        const std::size_t rows = held_.shape(0) / row_bytes_;
        for (std::size_t i = 0; i < tokens.shape(0); ++i) {
            const std::int32_t token = tokens.data()[i];
            require(token >= 0 && std::size_t(token) < rows, "a token is not in the vocabulary");
            format_.widen(held_.data() + std::size_t(token) * row_bytes_, columns_, y.data() + i * columns_);
        }
    }

private:
    const WeightFormat &format_;
    std::size_t columns_, row_bytes_;
    Bytes held_;
};

// RMS norm of `heads` heads of weight.shape[0] values each in every row of x, starting at column `first`; y may be x.
void norm(Pool &pool, const Rows &x, const ConstVector &weight, float eps, const Rows &y, std::size_t first,
          std::size_t heads) {
    const std::size_t n = x.shape(0), width = weight.shape(0), ld = x.shape(1);
    require(y.shape(0) == n && y.shape(1) == ld && first + heads * width <= ld, "a norm's rows do not fit its weight");
    const NoGilForRows released(n);
    const Kernels &kernel = kernels();
    const auto row = [&](std::size_t i, std::size_t) {
        for (std::size_t h = 0; h < heads; ++h) {
            const std::size_t at = i * ld + first + h * width;
            kernel.rms_norm(width, x.data() + at, weight.data(), eps, y.data() + at);
        }
    };
    pool.run(n, row);
}

void gated(Pool &pool, const Rows &gate_up, const Rows &y) {
    const std::size_t n = gate_up.shape(0), width = y.shape(1);
    require(y.shape(0) == n && gate_up.shape(1) == 2 * width, "gate and up are not twice as wide as the output");
    const NoGilForRows released(n);
    pool.run(n, [&](std::size_t i, std::size_t) {
        const float *gate = gate_up.data() + i * 2 * width;
        kernels().swiglu(width, gate, gate + width, y.data() + i * width);
    });
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

template <class AnyCache>
void check_attention(const AttentionShape &shape, const Rows &qkv, std::size_t position, const AnyCache &k,
                     const AnyCache &v, std::size_t row, const Rows &out) {
    const std::size_t n = qkv.shape(0);
    require(qkv.shape(1) == (shape.heads + 2 * shape.kv_heads) * shape.head_size && out.shape(0) == n &&
                out.shape(1) == shape.heads * shape.head_size,
            "the rows of Q, K and V do not fit the attention's heads");
    for (const AnyCache *c : {&k, &v}) {
        require(c->shape(0) == shape.kv_heads && c->shape(1) == shape.cells && c->shape(2) == row,
                "a K/V cache does not fit the attention's heads");
    }
    require(position + n <= shape.cells, "the rows do not fit into the K/V cache");
}

template <class AnyCache>
void attend_layer(Pool &pool, const AttentionShape &shape, const Rows &qkv, std::size_t position, const AnyCache &k,
                  const AnyCache &v, const Rows &out) {
    const CacheFormat &format = cache_format<AnyCache>();
    if (format.block_values > 1) {
        require(shape.head_size % format.block_values == 0 && shape.head_size <= max_q8_head,
                "a q8_0 K/V cache needs heads of whole blocks of 32 values, at most 256");
    }
    check_attention(shape, qkv, position, k, v, format.row_bytes(shape.head_size) / format.item_bytes, out);
    format.attend(pool, shape, qkv.data(), qkv.shape(1), qkv.shape(0), position, k.data(), v.data(), out.data());
}

void bind_row_operations(nb::module_ &m) {
    m.def(
        "rms_norm",
        [](Pool &pool, const Rows &x, const ConstVector &weight, float eps, const Rows &y) {
            require(x.shape(1) == weight.shape(0), "a norm's rows are not as wide as its weight");
            norm(pool, x, weight, eps, y, 0, 1);
        },
        nb::arg("pool"), x_, weight_, nb::arg("eps"), y_);
    m.def(
        "rms_norm_heads",
        [](Pool &pool, const Rows &x, const ConstVector &weight, float eps, std::size_t first, std::size_t heads) {
            norm(pool, x, weight, eps, x, first, heads);
        },
        nb::arg("pool"), x_, weight_, nb::arg("eps"), nb::arg("first"), nb::arg("heads"));
    m.def(
        "add_bias",
        [](const Rows &y, const ConstVector &bias) {
            require(y.shape(1) == bias.shape(0), "a bias is not as wide as the rows it is added to");
            for (std::size_t i = 0; i < y.shape(0); ++i) {
                kernels().add(y.shape(1), y.data() + i * y.shape(1), bias.data());
            }
        },
        y_, nb::arg("bias").noconvert(), NoGil());
    m.def("swiglu", &gated, nb::arg("pool"), nb::arg("gate_up").noconvert(), y_);
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

void bind_attention(nb::module_ &m) {
    m.def("attend", &attend_layer<Cache>, nb::arg("pool"), nb::arg("shape"), nb::arg("qkv").noconvert(),
          nb::arg("position"), nb::arg("k").noconvert(), nb::arg("v").noconvert(), nb::arg("out").noconvert(), NoGil());
    // The same name: the cache's dtype, uint16 or uint8, says of which type it is.
    m.def("attend", &attend_layer<Q8Cache>, nb::arg("pool"), nb::arg("shape"), nb::arg("qkv").noconvert(),
          nb::arg("position"), nb::arg("k").noconvert(), nb::arg("v").noconvert(), nb::arg("out").noconvert(), NoGil());
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
}

void bind_conversions(nb::module_ &m) {
    m.def(
        "widen_f16",
        [](const ConstHalves &x, const Vector &y) {
            require(x.shape(0) == y.shape(0), "the two arrays differ in length");
            kernels().f16_to_f32(x.shape(0), x.data(), y.data());
        },
        x_, y_, NoGil());
    m.def(
        "quantize_q8",
        [](const ConstVector &x, const Int8s &q, const Vector &d, const Int32s &sum) {
            const std::size_t n = x.shape(0);
            require(n % 32 == 0 && q.shape(0) == n && d.shape(0) == n / 32 && sum.shape(0) == n / 32,
                    "the arrays do not fit");
            kernels().quantize_q8_0(n, x.data(), q.data(), d.data(), sum.data());
        },
        x_, nb::arg("q").noconvert(), nb::arg("d").noconvert(), nb::arg("sum").noconvert(), NoGil());
    m.def(
        "round_f16",
        [](const ConstVector &x, const Halves &y) {
            require(x.shape(0) == y.shape(0), "the two arrays differ in length");
            kernels().f32_to_f16(x.shape(0), x.data(), y.data());
        },
        x_, y_, NoGil());
}

}  // namespace

void bind_formats(nb::module_ &m) {
    nb::class_<WeightFormat>(m, "WeightFormat")
        .def_ro("id", &WeightFormat::id)
        .def_ro("name", &WeightFormat::name)
        .def_ro("block_weights", &WeightFormat::block_weights)
        .def_ro("block_bytes", &WeightFormat::block_bytes)
        .def_prop_ro("activation", [](const WeightFormat &format) { return format.activation->name; })
        .def_prop_ro("row_multiple", [](const WeightFormat &format) {
            return std::max(format.block_weights, format.activation->block);
        });
    m.def("weight_formats", [] {
        nb::list found;
        for (const WeightFormat *format : weight_formats()) {
            found.append(nb::cast(format, nb::rv_policy::reference));
        }
        return found;
    });
    m.def(
        "dequantize",
        [](int type, const Bytes &data, const Vector &y) {
            const WeightFormat &format = weight_format(type);
            const std::size_t n = y.shape(0);
            require(n % format.block_weights == 0 && data.shape(0) == format.row_bytes(n), "the bytes do not fit");
            format.widen(data.data(), n, y.data());
        },
        nb::arg("type"), nb::arg("data").noconvert(), y_, NoGil());
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

void register_kernels(nb::module_ &m) {
    m.def(
        "kernel_sets",
        [] {
            std::vector<std::string> names;
            for (const InstructionSet *set : instruction_sets()) {
                if (set->supported()) {
                    names.emplace_back(set->name);
                }
            }
            return names;
        },
        "The instruction sets this processor runs, slowest first.");
    m.def("use_kernels", [](const std::string &name) { return use_instruction_set(name.c_str()); }, nb::arg("name"));
    m.def("kernel_set", [] { return std::string(instruction_set()); });
    nb::class_<Pool>(m, "Pool")
        .def(
            "__init__",
            [](Pool *self, std::size_t threads) {
                try {
                    new (self) Pool(threads);
                } catch (const std::system_error &) {
                    PyErr_Format(PyExc_OSError, "cannot start %zu threads", threads);
                    throw nb::python_error();
                }
            },
            nb::arg("threads"), "Raises OSError when the system gives no more threads.")
        .def_prop_ro("threads", &Pool::threads);
    nb::class_<Projection>(m, "Projection")
        .def(nb::init<std::shared_ptr<Pool>, std::size_t, const std::vector<std::tuple<int, Bytes, std::size_t>> &>(),
             nb::arg("pool"), nb::arg("columns"), nb::arg("parts"))
        .def("apply", &Projection::apply, x_, y_, nb::arg("span") = nb::none(), NoGil())
        .def("add_to", &Projection::add_to, x_, y_, nb::arg("span") = nb::none(), NoGil());
    nb::class_<Embedding>(m, "Embedding")
        .def(nb::init<int, std::size_t, const Bytes &>(), nb::arg("type"), nb::arg("columns"), nb::arg("data"))
        .def("look_up", &Embedding::look_up, nb::arg("tokens").noconvert(), y_, NoGil());
    nb::class_<RopeShape>(m, "RopeShape").def_ro("rotated", &RopeShape::rotated);
    m.def("rope_plain", &rope_plain, nb::arg("rotated"), nb::arg("base"), nb::arg("attention_factor"));
    m.def("rope_yarn", &rope_yarn, nb::arg("rotated"), nb::arg("base"), nb::arg("factor"), nb::arg("original_context"),
          nb::arg("attention_factor"));
    nb::class_<AttentionShape>(m, "AttentionShape")
        .def(nb::init<std::size_t, std::size_t, std::size_t, float, std::size_t, std::size_t>(), nb::arg("heads"),
             nb::arg("kv_heads"), nb::arg("head_size"), nb::arg("scale"), nb::arg("cells"), nb::arg("llama_threads"));
    bind_formats(m);
    bind_row_operations(m);
    bind_attention(m);
    bind_conversions(m);
}
