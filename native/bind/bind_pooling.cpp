// One vector of many, for model/.
#include "bind/arrays.h"
#include "bind/bind.h"
#include "kernels/pooling.h"

namespace nb = nanobind;
using namespace bankml;
using namespace bankml::bind;

void register_pooling(nb::module_ &m) {
    m.def(
        "mean_of_rows",
        [](const Rows &x, const Vector &y) {
            require(x.shape(0) > 0 && x.shape(1) == y.shape(0), "a mean is as wide as its rows, of which there is one");
            mean_of_rows(x.data(), x.shape(0), x.shape(1), y.data());
        },
        x_, y_, NoGil());
    m.def(
        "softmax",
        [](const Vector &x) {
            require(x.shape(0) > 0, "a softmax is over one value at least");
            softmax(x.data(), x.shape(0));
        },
        x_, NoGil());
    m.def(
        "normalize", [](const Vector &x, int norm) { normalize(x.data(), x.shape(0), norm); }, x_, nb::arg("norm"),
        NoGil());
}
