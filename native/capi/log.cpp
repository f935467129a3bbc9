#include "capi/log.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "bankml.h"
#include "capi/log_format.h"

namespace bankml::capi {
namespace {

struct Sink {
    bankml_log_cb call = nullptr;  // nullptr: standard error
    void *user = nullptr;
    std::uint64_t number = 0;  // each that is set has its own
};

class Delivery;

// Nothing here has a destructor that does anything: a thread may still log while the process ends.
std::mutex guard;           // of the two that follow
Sink sink;                  // the one that is set
Delivery *first = nullptr;  // those under way, linked, each on the stack of the thread that delivers
std::atomic<unsigned> delivered = 0;

// One message on its way: while it lives, its thread is inside its sink.
class Delivery {
  public:
    Delivery() {
        const std::lock_guard lock(guard);
        to_ = sink;
        next_ = first;
        first = this;
    }
    ~Delivery() {
        {
            const std::lock_guard lock(guard);
            Delivery **at = &first;
            while (*at != this) at = &(*at)->next_;
            *at = next_;
        }
        ++delivered;
        delivered.notify_all();
    }
    Delivery(const Delivery &) = delete;
    Delivery &operator=(const Delivery &) = delete;

    const Sink &to() const { return to_; }

    // Whether another thread is inside the sink of this number. Under `guard`.
    static bool elsewhere(std::uint64_t number) {
        for (const Delivery *at = first; at != nullptr; at = at->next_) {
            if (at->to_.number == number && at->thread_ != std::this_thread::get_id()) return true;
        }
        return false;
    }

  private:
    Sink to_;
    std::thread::id thread_ = std::this_thread::get_id();
    Delivery *next_;
};

// Only the sink just replaced is waited for: two threads that replace sinks from within sinks never wait for each other,
// for each sink is replaced once, by one of them.
void set_sink(bankml_log_cb call, void *user) noexcept {
    std::unique_lock lock(guard);
    const std::uint64_t replaced = sink.number;
    sink = {call, user, replaced + 1};
    while (Delivery::elsewhere(replaced)) {
        const unsigned seen = delivered;
        lock.unlock();
        delivered.wait(seen);
        lock.lock();
    }
}

// One line, "bankml: warn: MESSAGE".
void write_to_stderr(int level, std::string_view message) noexcept {
    constexpr const char *kNames[] = {"error", "warn", "info", "debug"};
    flockfile(stderr);
    if (level >= BANKML_LOG_ERROR && level <= BANKML_LOG_DEBUG) std::fprintf(stderr, "bankml: %s: ", kNames[level]);
    else std::fprintf(stderr, "bankml: level %d: ", level);
    std::fwrite(message.data(), 1, message.size(), stderr);
    if (!message.ends_with('\n')) std::fputc('\n', stderr);
    funlockfile(stderr);
}

// `message` has a NUL behind its last byte.
void deliver(int level, std::string_view message) noexcept {
    const Delivery delivery;
    if (delivery.to().call == nullptr) write_to_stderr(level, message);
    else delivery.to().call(level, message.data(), message.size(), delivery.to().user);
}

constexpr std::string_view kNoMemory = "a message of the log was lost: out of memory";

void log_formatted(int level, const char *format, std::va_list arguments) noexcept {
    try {
        deliver(level, format_message(format, arguments));
    } catch (const std::exception &) {
        deliver(level, kNoMemory);
    }
}

}  // namespace

void log_message(int level, std::string_view message) noexcept {
    const int error = errno;
    try {
        deliver(level, std::string(message));
    } catch (const std::exception &) {
        deliver(level, kNoMemory);
    }
    errno = error;
}

}  // namespace bankml::capi

extern "C" void bankml_set_log(bankml_log_cb cb, void *user) { bankml::capi::set_sink(cb, user); }

extern "C" void bankml_log(int level, const char *fmt, ...) {
    if (fmt == nullptr) return;
    const int error = errno;
    std::va_list arguments;
    va_start(arguments, fmt);
    bankml::capi::log_formatted(level, fmt, arguments);
    va_end(arguments);
    errno = error;
}
