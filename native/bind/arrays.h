// The arrays that Python hands over, and when the GIL is released.
#pragma once
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

namespace bankml::bind {

namespace nb = nanobind;

using Rows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Halves = nb::ndarray<std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstHalves = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cache = nb::ndarray<std::uint16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Q8Cache = nb::ndarray<std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Int8s = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Int32s = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstInt32s = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// An array of another dtype is refused, not converted: a converted output would be written and thrown away.
inline const auto x_ = nb::arg("x").noconvert(), y_ = nb::arg("y").noconvert(), weight_ = nb::arg("weight").noconvert();

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

inline void require(bool true_of_shapes, const char *message) {
    if (!true_of_shapes) {
        throw std::invalid_argument(message);
    }
}

}  // namespace bankml::bind
