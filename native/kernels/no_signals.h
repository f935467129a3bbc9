// Signals, kept from the threads that are started while it lives: they are for the program that calls us.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace bankml {

// A thread begins with the mask of the one that starts it. What a fault of its own raises is left through: the host's
// crash handler is to see it.
class NoSignals {
public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
            sigdelset(&all, fault);
        }
        pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals &) = delete;
    NoSignals &operator=(const NoSignals &) = delete;

private:
    sigset_t before_;
};

}  // namespace bankml
