// A processor family that has no file of its own: the portable definition alone.
#include <thread>

#include "isa/instruction_set.h"
#include "isa/sets.h"

namespace bankml {
namespace {

constinit const InstructionSet *const sets[] = {&portable_set};

}  // namespace

std::span<const InstructionSet *const> instruction_sets() { return sets; }

void spin_pause() { std::this_thread::yield(); }

}  // namespace bankml
