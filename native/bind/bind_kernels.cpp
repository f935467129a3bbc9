// The arithmetic for model/: a pool, matrices, experts, and coarse operations on float32 arrays. What takes long
// releases the GIL.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "bind/arrays.h"
#include "bind/bind.h"
#include "bind/weight_format.h"
#include "isa/instruction_set.h"
#include "kernels/experts.h"
#include "kernels/kernels.h"
#include "kernels/pool.h"
#include "kernels/project.h"

namespace nb = nanobind;
using namespace bankml;
using namespace bankml::bind;

namespace {

// The rows of one span; none given: all of x is one.
std::size_t checked_span(const Rows &x, std::optional<std::size_t> span) {
    const std::size_t n = x.shape(0), rows = span.value_or(n);
    require(n == 0 || (rows > 0 && n % rows == 0), "the rows are not whole spans");
    return rows;
}

// (type number, bytes, rows) of a matrix.
using Part = std::tuple<int, Bytes, std::size_t>;

// Matrices that meet the same activation, one behind the other in the output, and what is added to their products.
class Projection {
public:
    Projection(std::shared_ptr<Pool> pool, std::size_t columns, const std::vector<Part> &parts,
               std::optional<ConstVector> bias)
        : pool_(std::move(pool)), bias_(std::move(bias)) {
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
        require(!bias_ || bias_->shape(0) == rows_, "a bias is not as wide as the rows it is added to");
    }

    // span: the rows that one sequence has in its micro-batch; none given: all of x is one sequence's.
    void apply(const Rows &x, const Rows &y, std::optional<std::size_t> span) const {
        check(x, y);
        compute(x, checked_span(x, span), y.data());
    }

    // y += factor * (W x + b)
    void add_to(const Rows &x, const Rows &y, std::optional<std::size_t> span, float factor) const {
        check(x, y);
        const std::size_t all = x.shape(0) * rows_;
        float *products = pool_->shared(Pool::Shared::products, all);
        compute(x, checked_span(x, span), products);
        if (factor != 1.0f) {
            std::transform(products, products + all, products, [&](float one) { return one * factor; });
        }
        kernels().add(all, y.data(), products);
    }

private:
    void compute(const Rows &x, std::size_t span, float *y) const {
        const std::size_t n = x.shape(0);
        project(*pool_, matrices_, x.data(), n, span, y, rows_);
        for (std::size_t i = 0; bias_ && i < n; ++i) {
            kernels().add(rows_, y + i * rows_, bias_->data());
        }
    }

    void check(const Rows &x, const Rows &y) const {
        require(x.shape(1) == matrices_[0].columns && y.shape(1) == rows_ && x.shape(0) == y.shape(0),
                "a projection's input and output do not fit its matrices");
    }

    std::shared_ptr<Pool> pool_;
    std::vector<Matrix> matrices_;
    std::vector<Bytes> held_;  // keeps the weights' memory alive
    std::optional<ConstVector> bias_;
    std::size_t rows_ = 0;
};

// A layer's mixture of experts.
class Experts {
public:
    // gate, up, down: (type number, bytes, rows of one expert) of `count` matrices one behind the other.
    Experts(std::shared_ptr<Pool> pool, std::size_t count, std::size_t used, std::size_t columns, const Part &gate,
            const Part &up, const Part &down)
        : pool_(std::move(pool)), count_(count), columns_(columns) {
        require(used > 0 && used <= count, "a row uses at least one expert and at most all");
        const std::size_t inner = std::get<2>(gate);
        require(inner == std::get<2>(up) && columns == std::get<2>(down), "the experts' matrices do not fit together");
        matrices_ = {matrices(gate, columns), matrices(up, columns), matrices(down, inner), used};
    }

    // y += the experts' outputs for x by the router's logits [n, count]
    void add_to(const Rows &logits, const Rows &x, const Rows &y, std::optional<std::size_t> span) const {
        const std::size_t n = x.shape(0);
        require(logits.shape(0) == n && logits.shape(1) == count_ && x.shape(1) == columns_ && y.shape(0) == n &&
                    y.shape(1) == columns_,
                "the rows do not fit the experts");
        add_experts(*pool_, matrices_, logits.data(), x.data(), n, checked_span(x, span), y.data());
    }

private:
    std::vector<Matrix> matrices(const Part &part, std::size_t columns) {
        const auto &[type, data, rows] = part;
        const WeightFormat &format = weight_format(type);
        require(columns > 0 && columns % format.block_weights == 0 && columns % format.activation->block == 0,
                "a matrix's rows are not whole blocks");
        const std::size_t bytes = rows * format.row_bytes(columns);
        require(data.shape(0) == count_ * bytes, "the experts' bytes do not fit their shapes");
        std::vector<Matrix> found;
        for (std::size_t e = 0; e < count_; ++e) {
            found.push_back({&format, data.data() + e * bytes, rows, columns});
        }
        held_.push_back(data);
        return found;
    }

    std::shared_ptr<Pool> pool_;
    std::size_t count_, columns_;
    std::vector<Bytes> held_;
    ExpertMatrices matrices_;
};

// The rows of the embedding matrix, widened.
class Embedding {
public:
    Embedding(int type, std::size_t columns, const Bytes &data)
        : format_(weight_format(type)), columns_(columns), row_bytes_(format_.row_bytes(columns)), held_(data) {
        require(columns > 0 && columns % format_.block_weights == 0, "an embedding's rows are not whole blocks");
        require(row_bytes_ > 0 && data.shape(0) % row_bytes_ == 0, "an embedding's bytes are not whole rows");
    }

    void look_up(const ConstInt32s &tokens, const Rows &y) const {
        require(y.shape(0) == tokens.shape(0) && y.shape(1) == columns_, "an embedding's output does not fit");
        const std::size_t rows = held_.shape(0) / row_bytes_;
        std::vector<std::uint8_t> arranged(format_.layout ? row_bytes_ : 0);
        for (std::size_t i = 0; i < tokens.shape(0); ++i) {
            const std::int32_t token = tokens.data()[i];
            require(token >= 0 && std::size_t(token) < rows, "a token is not in the vocabulary");
            const std::uint8_t *row = held_.data() + std::size_t(token) * row_bytes_;
            if (format_.layout) {
                format_.layout->row(held_.data(), rows, row_bytes_, std::size_t(token), arranged.data());
                row = arranged.data();
            }
            format_.widen(row, columns_, y.data() + i * columns_);
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

void layer_norm(Pool &pool, const Rows &x, const ConstVector &weight, const ConstVector &bias, float eps,
                const Rows &y) {
    const std::size_t n = x.shape(0), width = x.shape(1);
    require(weight.shape(0) == width && bias.shape(0) == width && y.shape(0) == n && y.shape(1) == width,
            "a norm's rows are not as wide as its weight and bias");
    const NoGilForRows released(n);
    pool.run(n, [&](std::size_t i, std::size_t) {
        kernels().layer_norm(width, x.data() + i * width, weight.data(), bias.data(), eps, y.data() + i * width);
    });
}

void gelu(Pool &pool, const Rows &x) {
    const std::size_t width = x.shape(1);
    const NoGilForRows released(x.shape(0));
    pool.run(x.shape(0), [&](std::size_t i, std::size_t) { kernels().gelu(width, x.data() + i * width); });
}

// activation: a member of Kernels, swiglu or geglu.
template <auto activation>
void gated(Pool &pool, const Rows &gate_up, const Rows &y) {
    const std::size_t n = gate_up.shape(0), width = y.shape(1);
    require(y.shape(0) == n && gate_up.shape(1) == 2 * width, "gate and up are not twice as wide as the output");
    const NoGilForRows released(n);
    pool.run(n, [&](std::size_t i, std::size_t) {
        const float *gate = gate_up.data() + i * 2 * width;
        (kernels().*activation)(width, gate, gate + width, y.data() + i * width);
    });
}

// The first `width` values of every row, times a factor; ggml_vec_scale_f32.
void scale(const Rows &x, std::size_t width, float factor) {
    require(width <= x.shape(1), "a row is not as wide as what is scaled");
    const NoGilForRows released(x.shape(0));
    for (std::size_t i = 0; i < x.shape(0); ++i) {
        float *row = x.data() + i * x.shape(1);
        std::transform(row, row + width, row, [&](float one) { return one * factor; });
    }
}

// The same by a factor of each row's own.
void scale_rows(const Rows &x, std::size_t width, const ConstVector &factors) {
    require(width <= x.shape(1) && factors.shape(0) == x.shape(0), "the rows' factors do not fit them");
    const NoGilForRows released(x.shape(0));
    for (std::size_t i = 0; i < x.shape(0); ++i) {
        float *row = x.data() + i * x.shape(1);
        std::transform(row, row + width, row, [&](float one) { return one * factors.data()[i]; });
    }
}

// x = cap * tanh(x / cap), as a graph of scale, tanh and scale computes it.
void softcap(Pool &pool, const Rows &x, float cap) {
    constexpr std::size_t piece = 4096;
    const std::size_t all = x.size();
    const float inverse = 1.0f / cap;
    const nb::gil_scoped_release released;
    pool.run((all + piece - 1) / piece, [&](std::size_t chunk, std::size_t) {
        float *first = x.data() + chunk * piece, *last = x.data() + std::min(all, (chunk + 1) * piece);
        std::transform(first, last, first, [&](float one) { return std::tanh(one * inverse) * cap; });
    });
}

// y += x
void add(const Rows &x, const Rows &y) {
    require(x.shape(0) == y.shape(0) && x.shape(1) == y.shape(1), "the rows differ in shape");
    const NoGilForRows released(x.shape(0));
    kernels().add(x.size(), y.data(), x.data());
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
    m.def("layer_norm", &layer_norm, nb::arg("pool"), x_, weight_, nb::arg("bias").noconvert(), nb::arg("eps"), y_);
    m.def("gelu", &gelu, nb::arg("pool"), x_);
    m.def("add", &add, x_, y_);
    m.def("swiglu", &gated<&Kernels::swiglu>, nb::arg("pool"), nb::arg("gate_up").noconvert(), y_);
    m.def("geglu", &gated<&Kernels::geglu>, nb::arg("pool"), nb::arg("gate_up").noconvert(), y_);
    m.def("scale", &scale, x_, nb::arg("width"), nb::arg("factor"));
    m.def("scale_rows", &scale_rows, x_, nb::arg("width"), nb::arg("factors").noconvert());
    m.def("softcap", &softcap, nb::arg("pool"), x_, nb::arg("cap"));
}

}  // namespace

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
        .def(nb::init<std::shared_ptr<Pool>, std::size_t, const std::vector<Part> &, std::optional<ConstVector>>(),
             nb::arg("pool"), nb::arg("columns"), nb::arg("parts"), nb::arg("bias").noconvert() = nb::none())
        .def("apply", &Projection::apply, x_, y_, nb::arg("span") = nb::none(), NoGil())
        .def("add_to", &Projection::add_to, x_, y_, nb::arg("span") = nb::none(), nb::arg("factor") = 1.0f, NoGil());
    nb::class_<Experts>(m, "Experts")
        .def(nb::init<std::shared_ptr<Pool>, std::size_t, std::size_t, std::size_t, const Part &, const Part &,
                      const Part &>(),
             nb::arg("pool"), nb::arg("count"), nb::arg("used"), nb::arg("columns"), nb::arg("gate"), nb::arg("up"),
             nb::arg("down"))
        .def("add_to", &Experts::add_to, nb::arg("logits").noconvert(), x_, y_, nb::arg("span") = nb::none(), NoGil());
    nb::class_<Embedding>(m, "Embedding")
        .def(nb::init<int, std::size_t, const Bytes &>(), nb::arg("type"), nb::arg("columns"), nb::arg("data"))
        .def("look_up", &Embedding::look_up, nb::arg("tokens").noconvert(), y_, NoGil());
    bind_row_operations(m);
}
