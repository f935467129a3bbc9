#pragma once
#include "isa/instruction_set.h"

namespace bankml {
extern const InstructionSet portable_set, avx2_set, avx512_set;
}  // namespace bankml
