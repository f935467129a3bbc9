// Row-wise functions in AVX2: conversions, norms, SwiGLU, residual sums, and the one-column product.
#include <cmath>

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/vector.h"
#include "kernels/gelu.h"

namespace bankml::avx2 {

void f32_to_f16(std::size_t n, const float *x, std::uint16_t *y) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        store_f16(y + i, _mm256_loadu_ps(x + i));
    }
    for (; i < n; ++i) {
        y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
    }
}

void f16_to_f32(std::size_t n, const std::uint16_t *x, float *y) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, load_f16(x + i));
    }
    for (; i < n; ++i) {
        y[i] = widen_one(x[i]);
    }
}

void f16_round_trip(std::size_t n, const float *x, float *y) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT)));
    }
    for (; i < n; ++i) {
        y[i] = widen_one(_cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT));
    }
}

void rms_norm(std::size_t n, const float *x, const float *weight, float eps, float *y) {
    double sum = 0.0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {  // the products eight at a time, the additions one after the other
        const __m256 v = _mm256_loadu_ps(x + i);
        alignas(32) float square[8];
        _mm256_store_ps(square, _mm256_mul_ps(v, v));
        for (const float s : square) {
            sum += double(s);
        }
    }
    for (; i < n; ++i) {
        sum += double(x[i] * x[i]);
    }
    const float mean = float(sum / double(n));
    const float scale = 1.0f / std::sqrt(mean + eps);
    const __m256 s = _mm256_set1_ps(scale);
    for (i = 0; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), s), _mm256_loadu_ps(weight + i)));
    }
    for (; i < n; ++i) {
        y[i] = (x[i] * scale) * weight[i];
    }
}

void layer_norm(std::size_t n, const float *x, const float *weight, const float *bias, float eps, float *y) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += double(x[i]);
    }
    const float mean = float(sum) / float(n);
    const __m256 means = _mm256_set1_ps(mean);
    double squares = 0.0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + i), means);
        _mm256_storeu_ps(y + i, v);
        squares += double(sum_halves(_mm256_mul_ps(v, v)));
    }
    for (; i < n; ++i) {
        y[i] = x[i] - mean;
        squares += double(y[i] * y[i]);
    }
    const float variance = float(squares / double(n));
    const float scale = 1.0f / std::sqrt(variance + eps);
    const __m256 s = _mm256_set1_ps(scale);
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256 product = _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(y + i), s), _mm256_loadu_ps(weight + i));
        _mm256_storeu_ps(y + i, _mm256_add_ps(product, _mm256_loadu_ps(bias + i)));
    }
    for (; i < n; ++i) {
        y[i] = (y[i] * scale) * weight[i] + bias[i];
    }
}

void swiglu(std::size_t n, const float *gate, const float *up, float *y) {
    const __m256 one = _mm256_set1_ps(1.0f), zero = _mm256_setzero_ps();
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 x = _mm256_loadu_ps(gate + i);
        const __m256 silu = _mm256_div_ps(x, _mm256_add_ps(one, polynomial_exp8(_mm256_sub_ps(zero, x))));
        _mm256_storeu_ps(y + i, _mm256_mul_ps(silu, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; ++i) {
        y[i] = (gate[i] / (1.0f + std::exp(-gate[i]))) * up[i];
    }
}

// gelu(x) without the limit from below, where it is 0.
static __m256 gelu8(const float *table, __m256 x) {
    const __m256i index = _mm256_cvtepu16_epi32(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    const __m256 found = _mm256_i32gather_ps(table, index, 4);
    return _mm256_blendv_ps(found, x, _mm256_cmp_ps(x, _mm256_set1_ps(gelu_limit), _CMP_GE_OQ));
}

static float gelu1(const float *table, float x) {
    return x >= gelu_limit ? x : table[_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)];
}

void geglu(std::size_t n, const float *gate, const float *up, float *y) {
    const float *table = gelu_table();
    const __m256 below = _mm256_set1_ps(-gelu_limit);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 x = _mm256_loadu_ps(gate + i);
        const __m256 product = _mm256_mul_ps(gelu8(table, x), _mm256_loadu_ps(up + i));
        _mm256_storeu_ps(y + i, _mm256_andnot_ps(_mm256_cmp_ps(x, below, _CMP_LE_OQ), product));
    }
    for (; i < n; ++i) {
        y[i] = gate[i] <= -gelu_limit ? 0.0f : gelu1(table, gate[i]) * up[i];
    }
}

void gelu(std::size_t n, float *x) {
    const float *table = gelu_table();
    const __m256 below = _mm256_set1_ps(-gelu_limit);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        _mm256_storeu_ps(x + i, _mm256_andnot_ps(_mm256_cmp_ps(v, below, _CMP_LE_OQ), gelu8(table, v)));
    }
    for (; i < n; ++i) {
        x[i] = x[i] <= -gelu_limit ? 0.0f : gelu1(table, x[i]);
    }
}

#include "kernels/rotate.inc"

void add(std::size_t n, float *x, const float *y) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    }
    for (; i < n; ++i) {
        x[i] += y[i];
    }
}

}  // namespace bankml::avx2
