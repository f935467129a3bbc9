// Instruction sets: what each computes faster than the one below it. `portable` is the definition; a set's file lists
// only what it overrides. isa/<processor family>.cpp names the sets that a build has.
#pragma once
#include <span>

#include "formats/format.h"
#include "kernels/kernels.h"

namespace bankml {

struct ProductOverride {
    const WeightFormat *format;
    std::size_t family;
    Products products;
};

struct InstructionSet {
    const char *name;
    const InstructionSet *base;  // nullptr for portable
    bool (*supported)();         // on this processor
    void (*override_kernels)(Kernels &);
    std::span<const ProductOverride> products;
};

// Those of this build, slowest first, portable among them.
std::span<const InstructionSet *const> instruction_sets();

// The products of one family of a format, as the set in use has them.
const Products &products(const WeightFormat &format, std::size_t family);

// Takes the set called `name` into use; false: there is none, or this processor does not run it.
bool use_instruction_set(const char *name);
const char *instruction_set();

// What a thread that spins for a moment tells the processor.
void spin_pause();

}  // namespace bankml
