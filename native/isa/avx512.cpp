// AVX-512 with BW, VL, DQ, VBMI and VNNI, over AVX2. This file itself is compiled for any x86-64.
#include "kernels/avx512/avx512.h"
#include "formats/f16/f16.h"
#include "formats/q1_0/q1_0.h"
#include "formats/q2_0/q2_0.h"
#include "isa/sets.h"

namespace bankml {
namespace {

bool supported() {
    return avx2_set.supported() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

void override_kernels(Kernels &k) {
    k.attend_cells = avx512::attend_cells;
    k.attend_tile = avx512::attend_tile;
}

constinit const ProductOverride overrides[] = {
    {&f16_format, f16_dot_family, {.rows = avx512::f16_rows}},
    {&f16_format, f16_gemm_family, {.block = avx512::f16_gemm, .plan = f16_gemm_plan}},
    {&q1_0_format,
     0,
     {.block = block_product_of<Q8Column, avx512::q1_0_block>, .block_from = 1, .plan = avx512::q1_0_plan}},
    {&q2_0_format, 0, {.rows = product_of<Q8Column, avx512::q2_0_rows>}},
};

}  // namespace

constinit const InstructionSet avx512_set = {"avx512", &avx2_set, supported, override_kernels, overrides};

}  // namespace bankml
