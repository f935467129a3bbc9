#include "kernels/pool.h"

#include <algorithm>

#include "isa/instruction_set.h"
#include "kernels/no_signals.h"

namespace bankml {
namespace {

// About 50 microseconds on a current processor: longer than the gap between two calls of a graph, shorter than a
// scheduler's slice.
constexpr int spins = 2000;

constexpr std::uint64_t run_of(std::uint64_t ticket) { return ticket >> 32; }
constexpr std::uint32_t chunk_of(std::uint64_t ticket) { return std::uint32_t(ticket); }

}  // namespace

Pool::Pool(std::size_t threads) : scratch_(std::max<std::size_t>(threads, 1)) {
    const NoSignals started_without;
    try {
        for (std::size_t i = 1; i < scratch_.size(); ++i) {
            workers_.emplace_back([this, i] { worker(i); });
        }
    } catch (...) {
        stop();  // a thread that nobody has joined ends the process when it is destroyed
        throw;
    }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
    stopping_.store(true);
    run_.fetch_add(1);
    run_.notify_all();
    for (auto &w : workers_) {
        w.join();
    }
}

float *Pool::scratch(std::size_t thread, std::size_t floats) {
    auto &buffer = scratch_[thread];
    if (buffer.size() < floats) {
        buffer.resize(floats);
    }
    return buffer.data();
}

float *Pool::shared(Shared which, std::size_t floats) {
    auto &buffer = shared_[std::size_t(which)];
    if (buffer.size() < floats) {
        buffer.resize(floats);
    }
    return buffer.data();
}

void Pool::work_on(std::uint64_t seen, std::size_t thread) {
    // Read before the claim: while the claim's run is under way these belong to it.
    for (;;) {
        const Call call = call_.load(std::memory_order_relaxed);
        const void *work = work_.load(std::memory_order_relaxed);
        const std::uint32_t chunks = chunks_.load(std::memory_order_relaxed);
        if (chunk_of(seen) >= chunks) {
            return;
        }
        if (!ticket_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
            continue;  // `seen` is now what stands there, perhaps a later run's
        }
        call(work, chunk_of(seen), thread);
        done_.fetch_add(1, std::memory_order_release);
        seen = ticket_.load(std::memory_order_acquire);
    }
}

void Pool::run_erased(std::size_t chunks, Call call, const void *work) {
    if (workers_.empty() || chunks <= 1) {
        for (std::size_t c = 0; c < chunks; ++c) {
            call(work, c, 0);
        }
        return;
    }
    // Every chunk of the run before is done, so no claim of it can succeed while these change: its chunk number is
    // at its end.
    const std::uint64_t next = (run_of(ticket_.load(std::memory_order_relaxed)) + 1) & 0xffffffffu;
    ticket_.store((next << 32) | 0xffffffffu, std::memory_order_release);
    done_.store(0, std::memory_order_relaxed);
    call_.store(call, std::memory_order_relaxed);
    work_.store(work, std::memory_order_relaxed);
    chunks_.store(std::uint32_t(chunks), std::memory_order_relaxed);
    ticket_.store(next << 32, std::memory_order_release);
    run_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) {
        run_.notify_all();
    }
    work_on(next << 32, 0);
    while (done_.load(std::memory_order_acquire) != chunks) {
        spin_pause();
    }
}

void Pool::worker(std::size_t thread) {
    std::uint32_t last = 0;
    while (!stopping_.load(std::memory_order_relaxed)) {
        int left = spins;
        while (run_.load(std::memory_order_acquire) == last && --left > 0) {
            spin_pause();
        }
        if (run_.load(std::memory_order_acquire) == last) {
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            run_.wait(last, std::memory_order_seq_cst);
            sleepers_.fetch_sub(1, std::memory_order_relaxed);
        }
        last = run_.load(std::memory_order_acquire);
        work_on(ticket_.load(std::memory_order_acquire), thread);
    }
}

}  // namespace bankml
