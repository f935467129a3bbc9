// The types of weights, and conversions of arrays of numbers.
#include <nanobind/stl/string.h>

#include <algorithm>

#include "bind/arrays.h"
#include "bind/bind.h"
#include "bind/weight_format.h"
#include "kernels/kernels.h"

namespace nb = nanobind;
using namespace bankml;
using namespace bankml::bind;

namespace {

// Puts `data`, matrices of `rows` rows one behind the other, from the file's order into the one that products read.
void arrange(int type, std::size_t columns, std::size_t rows, const WritableBytes &data) {
    const WeightFormat &format = weight_format(type);
    require(columns > 0 && columns % format.block_weights == 0, "a matrix's rows are not whole blocks");
    const std::size_t row_bytes = format.row_bytes(columns);
    require(rows > 0 && data.shape(0) % (rows * row_bytes) == 0, "a matrix's bytes do not fit its shape");
    for (std::size_t at = 0; format.layout && at < data.shape(0); at += rows * row_bytes) {
        format.layout->arrange(data.data() + at, rows, row_bytes);
    }
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

void register_formats(nb::module_ &m) {
    nb::class_<WeightFormat>(m, "WeightFormat")
        .def_ro("id", &WeightFormat::id)
        .def_ro("name", &WeightFormat::name)
        .def_ro("block_weights", &WeightFormat::block_weights)
        .def_ro("block_bytes", &WeightFormat::block_bytes)
        .def_prop_ro("arranged", [](const WeightFormat &format) { return format.layout != nullptr; })
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
    m.def("arrange", &arrange, nb::arg("type"), nb::arg("columns"), nb::arg("rows"), nb::arg("data").noconvert(),
          NoGil());
    m.def(
        "dequantize",
        [](int type, const Bytes &data, const Vector &y) {
            const WeightFormat &format = weight_format(type);
            const std::size_t n = y.shape(0);
            require(n % format.block_weights == 0 && data.shape(0) == format.row_bytes(n), "the bytes do not fit");
            format.widen(data.data(), n, y.data());
        },
        nb::arg("type"), nb::arg("data").noconvert(), y_, NoGil());
    bind_conversions(m);
}
