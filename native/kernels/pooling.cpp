#include "kernels/pooling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/lanes.h"

namespace bankml {
namespace {

constexpr std::size_t step = 32;

double norm_of(const float *x, std::size_t n, int norm) {
    double sum = 0.0;
    if (norm == 0) {
        for (std::size_t i = 0; i < n; ++i) {
            sum = std::max(sum, double(std::abs(x[i])));
        }
        return sum / 32760.0;
    }
    for (std::size_t i = 0; i < n; ++i) {
        sum += norm == 2 ? double(x[i] * x[i]) : std::pow(double(std::abs(x[i])), double(norm));
    }
    return norm == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / norm);
}

}  // namespace

void mean_of_rows(const float *x, std::size_t n, std::size_t width, float *y) {
    const float share = 1.0f / float(n);
    const std::size_t whole = n & ~(step - 1);
    std::vector<float> lanes(step * width);
    for (std::size_t i = 0; i < whole; ++i) {
        float *lane = lanes.data() + i % step * width;
        for (std::size_t c = 0; c < width; ++c) {
            lane[c] = std::fma(x[i * width + c], share, lane[c]);
        }
    }
    for (std::size_t c = 0; c < width; ++c) {
        float lane[8];
        for (std::size_t j = 0; j < 8; ++j) {
            const auto at = [&](std::size_t accumulator) { return lanes[(8 * accumulator + j) * width + c]; };
            lane[j] = (at(0) + at(2)) + (at(1) + at(3));
        }
        y[c] = sum_neighbour_lanes(lane);
    }
    const std::size_t fours = n & ~std::size_t{3};  // gcc multiplies fours of what is left, and fuses the last ones
    for (std::size_t i = whole; i < n; ++i) {
        for (std::size_t c = 0; c < width; ++c) {
            const float one = x[i * width + c];
            y[c] = i < fours ? y[c] + one * share : std::fma(one, share, y[c]);
        }
    }
}

void softmax(float *x, std::size_t n) {
    const float highest = *std::max_element(x, x + n);
    double sum = 0.0;
    const std::size_t whole = n & ~std::size_t{7};
    for (std::size_t i = 0; i < whole; i += 8) {
        std::transform(x + i, x + i + 8, x + i, [&](float one) { return polynomial_exp(one - highest); });
        sum += double(sum_lanes(x + i));
    }
    for (std::size_t i = whole; i < n; ++i) {
        x[i] = std::exp(x[i] - highest);
        sum += double(x[i]);
    }
    const float share = float(1.0 / sum);
    std::transform(x, x + n, x, [&](float one) { return one * share; });
}

void normalize(float *x, std::size_t n, int norm) {
    const double size = norm == -1 ? 1.0 : norm_of(x, n, norm);
    const float factor = size > 0.0 ? float(1.0 / size) : 0.0f;
    std::transform(x, x + n, x, [&](float one) { return one * factor; });
}

}  // namespace bankml
