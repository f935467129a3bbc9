// The definition of the row-wise operations. Slow on purpose where slowness is clearer; every instruction set is
// asserted equal to it.
#include <cmath>

#include "kernels/gelu.h"
#include "kernels/half.h"
#include "kernels/lanes.h"
#include "kernels/portable/portable.h"

namespace bankml::portable {

void f32_to_f16(std::size_t n, const float *x, std::uint16_t *y) {
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = float_to_half(x[i]);
    }
}

void f16_to_f32(std::size_t n, const std::uint16_t *x, float *y) {
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = half_to_float(x[i]);
    }
}

void f16_round_trip(std::size_t n, const float *x, float *y) {
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = half_to_float(float_to_half(x[i]));
    }
}

void rms_norm(std::size_t n, const float *x, const float *weight, float eps, float *y) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += double(x[i] * x[i]);
    }
    const float mean = float(sum / double(n));
    const float scale = 1.0f / std::sqrt(mean + eps);
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = (x[i] * scale) * weight[i];
    }
}

void layer_norm(std::size_t n, const float *x, const float *weight, const float *bias, float eps, float *y) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += double(x[i]);
    }
    const float mean = float(sum) / float(n);
    double squares = 0.0;
    const std::size_t whole = n & ~std::size_t{7};
    for (std::size_t i = 0; i < whole; i += 8) {
        float square[8];
        for (std::size_t j = 0; j < 8; ++j) {
            y[i + j] = x[i + j] - mean;
            square[j] = y[i + j] * y[i + j];
        }
        squares += double(sum_lanes(square));
    }
    for (std::size_t i = whole; i < n; ++i) {
        y[i] = x[i] - mean;
        squares += double(y[i] * y[i]);
    }
    const float variance = float(squares / double(n));
    const float scale = 1.0f / std::sqrt(variance + eps);
    for (std::size_t i = 0; i < n; ++i) {
        y[i] = (y[i] * scale) * weight[i] + bias[i];
    }
}

void swiglu(std::size_t n, const float *gate, const float *up, float *y) {
    const std::size_t whole = n & ~std::size_t{7};
    for (std::size_t i = 0; i < whole; ++i) {
        y[i] = (gate[i] / (1.0f + polynomial_exp(0.0f - gate[i]))) * up[i];
    }
    for (std::size_t i = whole; i < n; ++i) {  // the reference's tail calls libm
        y[i] = (gate[i] / (1.0f + std::exp(-gate[i]))) * up[i];
    }
}

void geglu(std::size_t n, const float *gate, const float *up, float *y) {
    const float *table = gelu_table();
    for (std::size_t i = 0; i < n; ++i) {
        if (gate[i] <= -gelu_limit) {
            y[i] = 0.0f;
        } else {
            y[i] = (gate[i] >= gelu_limit ? gate[i] : table[float_to_half(gate[i])]) * up[i];
        }
    }
}

void gelu(std::size_t n, float *x) {
    const float *table = gelu_table();
    for (std::size_t i = 0; i < n; ++i) {
        if (x[i] <= -gelu_limit) {
            x[i] = 0.0f;
        } else if (x[i] < gelu_limit) {
            x[i] = table[float_to_half(x[i])];
        }
    }
}

#include "kernels/rotate.inc"

void add(std::size_t n, float *x, const float *y) {
    for (std::size_t i = 0; i < n; ++i) {
        x[i] += y[i];
    }
}

}  // namespace bankml::portable
