#include <atomic>
#include <cstring>

#include "kernels/kernels.h"

namespace bankml {
namespace {

bool runs_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("bmi2");
}

bool runs_avx512() {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

const Kernels *best() {
    if (runs_avx512()) {
        return &avx512_kernels;
    }
    return runs_avx2() ? &avx2_kernels : &portable_kernels;
}

std::atomic<const Kernels *> chosen{nullptr};

}  // namespace

const Kernels *find_kernels(const char *name) {
    if (std::strcmp(name, portable_kernels.name) == 0) {
        return &portable_kernels;
    }
    if (std::strcmp(name, avx2_kernels.name) == 0 && runs_avx2()) {
        return &avx2_kernels;
    }
    if (std::strcmp(name, avx512_kernels.name) == 0 && runs_avx512()) {
        return &avx512_kernels;
    }
    return nullptr;
}

const Kernels &kernels() {
    const Kernels *table = chosen.load(std::memory_order_acquire);
    return table ? *table : *best();
}

bool use_kernels(const char *name) {
    const Kernels *table = find_kernels(name);
    if (table) {
        chosen.store(table, std::memory_order_release);
    }
    return table != nullptr;
}

}  // namespace bankml
