// The definition: every operation; the products stand in their formats' records.
#include "kernels/portable/portable.h"

#include "isa/sets.h"

namespace bankml {
namespace {

bool supported() { return true; }

void override_kernels(Kernels &k) {
    k.f32_to_f16 = portable::f32_to_f16;
    k.f16_to_f32 = portable::f16_to_f32;
    k.f16_round_trip = portable::f16_round_trip;
    k.quantize_q8_0 = portable::quantize_q8_0;
    k.quantize_q8_1 = portable::quantize_q8_1;
    k.quantize_q8_K = portable::quantize_q8_K;
    k.rms_norm = portable::rms_norm;
    k.layer_norm = portable::layer_norm;
    k.swiglu = portable::swiglu;
    k.geglu = portable::geglu;
    k.gelu = portable::gelu;
    k.add = portable::add;
    k.rotate = portable::rotate;
    k.attend_cells = portable::attend_cells;
    k.attend_tile = portable::attend_tile;
    k.hadamard = portable::hadamard;
    k.attend_cells_q8 = portable::attend_cells_q8;
}

}  // namespace

constinit const InstructionSet portable_set = {"portable", nullptr, supported, override_kernels, {}};

}  // namespace bankml
