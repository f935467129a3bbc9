#include "isa/instruction_set.h"

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

namespace bankml {
namespace {

constexpr std::size_t type_numbers = 64;  // ggml's are below this

// A set with all that it takes over from the ones below it.
struct Resolved {
    const char *name;
    Kernels kernels;
    std::array<std::array<Products, max_families>, type_numbers> products{};
};

void apply(const InstructionSet &set, Resolved &to) {
    if (set.base) {
        apply(*set.base, to);
    }
    set.override_kernels(to.kernels);
    for (const ProductOverride &one : set.products) {
        to.products[std::size_t(one.format->id)][one.family] = one.products;
    }
}

Resolved resolve(const InstructionSet &set) {
    Resolved to{set.name, {}, {}};
    for (const WeightFormat *format : weight_formats()) {
        for (std::size_t family = 0; family < max_families; ++family) {
            to.products[std::size_t(format->id)][family] = format->products[family];
        }
    }
    apply(set, to);
    return to;
}

// Those that this processor runs, slowest first.
const std::vector<Resolved> &supported() {
    static const std::vector<Resolved> sets = [] {
        std::vector<Resolved> found;
        for (const InstructionSet *set : instruction_sets()) {
            if (set->supported()) {
                found.push_back(resolve(*set));
            }
        }
        return found;
    }();
    return sets;
}

std::atomic<const Resolved *> chosen{nullptr};

const Resolved &current() {
    const Resolved *set = chosen.load(std::memory_order_acquire);
    return set ? *set : supported().back();
}

}  // namespace

const Kernels &kernels() { return current().kernels; }

const Products &products(const WeightFormat &format, std::size_t family) {
    return current().products[std::size_t(format.id)][family];
}

bool use_instruction_set(const char *name) {
    for (const Resolved &set : supported()) {
        if (std::strcmp(name, set.name) == 0) {
            chosen.store(&set, std::memory_order_release);
            return true;
        }
    }
    return false;
}

const char *instruction_set() { return current().name; }

}  // namespace bankml
