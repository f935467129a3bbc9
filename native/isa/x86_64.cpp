// The instruction sets of x86-64.
#include <immintrin.h>

#include "isa/instruction_set.h"
#include "isa/sets.h"

namespace bankml {
namespace {

constinit const InstructionSet *const sets[] = {&portable_set, &avx2_set, &avx512_set};

}  // namespace

std::span<const InstructionSet *const> instruction_sets() { return sets; }

void spin_pause() { _mm_pause(); }

}  // namespace bankml
