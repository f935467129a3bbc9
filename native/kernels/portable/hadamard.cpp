// The definition of the Hadamard rotation.
#include <cmath>

#include "kernels/portable/portable.h"

namespace bankml::portable {

void hadamard(std::size_t n, float *x) {
    const float scale = 1.0f / std::sqrt(float(n));
    for (std::size_t i = 0; i < n; ++i) {
        x[i] *= scale;
    }
    for (std::size_t apart = 1; apart < n; apart *= 2) {
        for (std::size_t i = 0; i < n; i += 2 * apart) {
            for (std::size_t j = i; j < i + apart; ++j) {
                const float a = x[j], b = x[j + apart];
                x[j] = a + b;
                x[j + apart] = a - b;
            }
        }
    }
}

}  // namespace bankml::portable
