// Memory on pages of its own for what is large, which goes back to the system the moment it is freed.
//
// malloc keeps what threads have freed for the next allocation of the same thread, so that a model which is dropped in
// one thread and read again in another would leave its memory behind. What is small comes from operator new, where the
// sanitizers see its ends.
#pragma once
#include <sys/mman.h>
#include <cstddef>
#include <new>
#include <vector>

namespace bankml {

template <class T>
struct PageAllocator {
    using value_type = T;
    static constexpr std::size_t large = std::size_t(1) << 20;  // bytes

    PageAllocator() = default;
    template <class U>
    PageAllocator(const PageAllocator<U> &) {}

    T *allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        if (bytes < large) {
            return static_cast<T *>(::operator new(bytes));
        }
        void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::bad_alloc();
        }
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        if (bytes < large) {
            ::operator delete(memory);
        } else {
            munmap(memory, bytes);
        }
    }
    friend bool operator==(const PageAllocator &, const PageAllocator &) { return true; }
};

using Buffer = std::vector<float, PageAllocator<float>>;

}  // namespace bankml
