// A pool of worker threads that hands out numbered chunks.
//
// The caller works too. Chunks are claimed one by one, so a worker that lost its core delays nobody but the chunk it
// holds, and the caller waits for chunks, never for workers. Idle workers spin briefly, then sleep in the kernel.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/pages.h"

namespace bankml {

class Pool {
public:
    // Throws std::system_error when the system gives no more threads; those started by then have ended.
    explicit Pool(std::size_t threads);
    ~Pool();
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    std::size_t threads() const { return workers_.size() + 1; }

    // Calls work(chunk, thread) once for each chunk in [0, chunks); returns when all are done. One caller at a time.
    template <class Work>
    void run(std::size_t chunks, const Work &work) {
        run_erased(chunks, &call<Work>, &work);
    }

    // A buffer of at least `floats` floats that belongs to `thread` during a run.
    float *scratch(std::size_t thread, std::size_t floats);
    // A buffer that all threads may see during a run, alive until the next call for the same one. One pool's calls come
    // one after the other, so a model's layers share them.
    enum class Shared { activations, products, parts, gathered, gate_up, gated, size };
    float *shared(Shared which, std::size_t floats);

private:
    using Call = void (*)(const void *work, std::size_t chunk, std::size_t thread);
    template <class Work>
    static void call(const void *work, std::size_t chunk, std::size_t thread) {
        (*static_cast<const Work *>(work))(chunk, thread);
    }
    void run_erased(std::size_t chunks, Call call, const void *work);
    void work_on(std::uint64_t seen, std::size_t thread);
    void worker(std::size_t thread);
    void stop();

    // The run's number (high half) and the next chunk (low half): a claim succeeds only while its run is under way.
    alignas(64) std::atomic<std::uint64_t> ticket_{0};
    std::atomic<Call> call_{nullptr};
    std::atomic<const void *> work_{nullptr};
    std::atomic<std::uint32_t> chunks_{0};
    alignas(64) std::atomic<std::uint32_t> done_{0};
    alignas(64) std::atomic<std::uint32_t> run_{0};  // what sleepers wait on
    std::atomic<std::uint32_t> sleepers_{0};
    std::atomic<bool> stopping_{false};
    std::vector<Buffer> scratch_;
    std::array<Buffer, std::size_t(Shared::size)> shared_;
    std::vector<std::thread> workers_;
};

}  // namespace bankml
