// AVX2 with FMA, F16C and BMI2. This file itself is compiled for any x86-64.
#include "kernels/avx2/avx2.h"
#include "formats/bf16/bf16.h"
#include "formats/f16/f16.h"
#include "formats/f32/f32.h"
#include "formats/floats.h"
#include "formats/iq1_m/iq1_m.h"
#include "formats/iq1_s/iq1_s.h"
#include "formats/iq2_s/iq2_s.h"
#include "formats/iq2_xs/iq2_xs.h"
#include "formats/iq2_xxs/iq2_xxs.h"
#include "formats/iq3_s/iq3_s.h"
#include "formats/iq3_xxs/iq3_xxs.h"
#include "formats/iq4_nl/iq4_nl.h"
#include "formats/iq4_xs/iq4_xs.h"
#include "formats/mxfp4/mxfp4.h"
#include "formats/q1_0/q1_0.h"
#include "formats/q2_0/q2_0.h"
#include "formats/q2_K/q2_K.h"
#include "formats/q3_K/q3_K.h"
#include "formats/q4_0/q4_0.h"
#include "formats/q4_1/q4_1.h"
#include "formats/q4_K/q4_K.h"
#include "formats/q5_0/q5_0.h"
#include "formats/q5_1/q5_1.h"
#include "formats/q5_K/q5_K.h"
#include "formats/q6_K/q6_K.h"
#include "formats/q8_0/q8_0.h"
#include "formats/tq1_0/tq1_0.h"
#include "formats/tq2_0/tq2_0.h"
#include "isa/sets.h"

namespace bankml {
namespace {

bool supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("bmi2");
}

void override_kernels(Kernels &k) {
    k.f32_to_f16 = avx2::f32_to_f16;
    k.f16_to_f32 = avx2::f16_to_f32;
    k.f16_round_trip = avx2::f16_round_trip;
    k.quantize_q8_0 = avx2::quantize_q8_0;
    k.quantize_q8_1 = avx2::quantize_q8_1;
    k.quantize_q8_K = avx2::quantize_q8_K;
    k.rms_norm = avx2::rms_norm;
    k.layer_norm = avx2::layer_norm;
    k.swiglu = avx2::swiglu;
    k.geglu = avx2::geglu;
    k.gelu = avx2::gelu;
    k.add = avx2::add;
    k.rotate = avx2::rotate;
    k.attend_cells = avx2::attend_cells;
    k.attend_tile = avx2::attend_tile;
    k.hadamard = avx2::hadamard;
    k.attend_cells_q8 = avx2::attend_cells_q8;
}

constinit const ProductOverride overrides[] = {
    {&f16_format, f16_dot_family, {.rows = avx2::f16_rows}},
    {&f16_format, f16_gemm_family, {.block = avx2::f16_gemm, .plan = f16_gemm_plan}},
    {&q1_0_format,
     0,
     {.block = block_product_of<Q8Column, avx2::q1_0_block>, .block_from = 1, .plan = avx2::q1_0_plan}},
    {&q2_0_format, 0, {.rows = product_of<Q8Column, avx2::q2_0_rows>}},
    {&q8_0_format, 0, {.rows = product_of<Q8Column, avx2::q8_0_rows>}},
    {&q4_0_format,
     q4_0_chain,
     {.rows = product_of<Q8Column, avx2::q4_0_chain_rows>,
      .block = block_product_of<Q8Column, avx2::q4_0_chain_block>,
      .block_from = 8,
      .plan = avx2::q4_0_plan}},
    {&q4_0_format, q4_0_lanes, {.rows = product_of<Q8Column, avx2::q4_0_lanes_rows>}},
    {&q4_K_format, q4_K_gemv, {.rows = product_of<Q8KColumn, avx2::q4_K_gemv_rows>}},
    {&q4_K_format,
     q4_K_gemm,
     {.rows = product_of<Q8KColumn, avx2::q4_K_gemm_rows>,
      .block = block_product_of<Q8KColumn, avx2::q4_K_gemm_block>,
      .block_from = 8,
      .plan = avx2::q4_K_gemm_plan}},
    {&q4_K_format, q4_K_lanes, {.rows = product_of<Q8KColumn, avx2::q4_K_lanes_rows>}},
    {&q5_K_format, 0, {.rows = product_of<Q8KColumn, avx2::q5_K_rows>}},
    {&q6_K_format, 0, {.rows = product_of<Q8KColumn, avx2::q6_K_rows>}},
    {&f32_format, float_dot, {.rows = avx2::f32_rows}},
    {&f32_format, float_gemm, {.block = avx2::f32_gemm, .plan = gemm_plan}},
    {&bf16_format, float_dot, {.rows = avx2::bf16_rows}},
    {&bf16_format, float_gemm, {.block = avx2::bf16_gemm, .plan = gemm_plan}},
    {&q4_1_format, 0, {.rows = product_of<Q8_1Column, avx2::q4_1_rows>}},
    {&q5_0_format, 0, {.rows = product_of<Q8Column, avx2::q5_0_rows>}},
    {&q5_1_format, 0, {.rows = product_of<Q8_1Column, avx2::q5_1_rows>}},
    {&q2_K_format, 0, {.rows = product_of<Q8KColumn, avx2::q2_K_rows>}},
    {&q3_K_format, 0, {.rows = product_of<Q8KColumn, avx2::q3_K_rows>}},
    {&iq4_nl_format,
     iq4_nl_chain,
     {.rows = product_of<Q8Column, avx2::iq4_nl_chain_rows>,
      .block = block_product_of<Q8Column, avx2::iq4_nl_chain_block>,
      .block_from = 8,
      .plan = avx2::iq4_nl_plan}},
    {&iq4_nl_format, iq4_nl_pairs, {.rows = product_of<Q8Column, avx2::iq4_nl_pairs_rows>}},
    {&iq4_nl_format, iq4_nl_lanes, {.rows = product_of<Q8Column, avx2::iq4_nl_lanes_rows>}},
    {&iq2_xxs_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq2_xxs_lanes_rows>}},
    {&iq2_xxs_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq2_xxs_panel_block>, .plan = avx2::iq2_xxs_panel_plan}},
    {&iq2_xs_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq2_xs_lanes_rows>}},
    {&iq2_xs_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq2_xs_panel_block>, .plan = avx2::iq2_xs_panel_plan}},
    {&iq3_xxs_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq3_xxs_lanes_rows>}},
    {&iq3_xxs_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq3_xxs_panel_block>, .plan = avx2::iq3_xxs_panel_plan}},
    {&iq1_s_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq1_s_lanes_rows>}},
    {&iq1_s_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq1_s_panel_block>, .plan = avx2::iq1_s_panel_plan}},
    {&iq3_s_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq3_s_lanes_rows>}},
    {&iq3_s_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq3_s_panel_block>, .plan = avx2::iq3_s_panel_plan}},
    {&iq2_s_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq2_s_lanes_rows>}},
    {&iq2_s_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq2_s_panel_block>, .plan = avx2::iq2_s_panel_plan}},
    {&iq1_m_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq1_m_lanes_rows>}},
    {&iq1_m_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq1_m_panel_block>, .plan = avx2::iq1_m_panel_plan}},
    {&iq4_xs_format, lanes_family, {.rows = product_of<Q8KColumn, avx2::iq4_xs_lanes_rows>}},
    {&iq4_xs_format,
     panel_family,
     {.block = block_product_of<Q8KColumn, avx2::iq4_xs_panel_block>, .plan = avx2::iq4_xs_panel_plan}},
    {&mxfp4_format,
     mxfp4_chain,
     {.rows = product_of<Q8Column, avx2::mxfp4_chain_rows>,
      .block = block_product_of<Q8Column, avx2::mxfp4_chain_block>,
      .block_from = 8,
      .plan = avx2::mxfp4_plan}},
    {&mxfp4_format, mxfp4_pairs, {.rows = product_of<Q8Column, avx2::mxfp4_pairs_rows>}},
    {&tq1_0_format, 0, {.rows = product_of<Q8KColumn, avx2::tq1_0_rows>}},
    {&tq2_0_format, 0, {.rows = product_of<Q8KColumn, avx2::tq2_0_rows>}},
};

}  // namespace

constinit const InstructionSet avx2_set = {"avx2", &portable_set, supported, override_kernels, overrides};

}  // namespace bankml
