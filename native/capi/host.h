// What belongs to the host program and is left as it was found: arithmetic, signals, environment.
#pragma once
#include <cfenv>

#include "kernels/no_signals.h"

namespace bankml::capi {

// While it lives, the calling thread computes as C programs do at their start: to nearest, no flushing to zero, no traps.
// The bits of an answer depend on it; the host's own mode, its exception flags included, comes back afterwards.
class Arithmetic {
  public:
    Arithmetic();
    ~Arithmetic();
    Arithmetic(const Arithmetic &) = delete;
    Arithmetic &operator=(const Arithmetic &) = delete;

  private:
    friend class HostsTurn;
    void ours();

    Arithmetic *outer_;  // the host's callbacks may call this library again
    std::fenv_t host_;
};

// While it lives, the calling thread computes as the host had it when it called: around a call back into the host, which
// may change its mode there.
class HostsTurn {
  public:
    HostsTurn();
    ~HostsTurn();
    HostsTurn(const HostsTurn &) = delete;
    HostsTurn &operator=(const HostsTurn &) = delete;

  private:
    Arithmetic *interrupted_;
};

// While it lives, the process has no signal for the threads that are begun, and, where `alone`, OpenBLAS, if it is loaded
// now, begins none: it reads its number of threads from the environment, and ends the process when it cannot have them.
// Nothing here computes with it.
class Quiet {
  public:
    explicit Quiet(bool alone);
    ~Quiet();
    Quiet(const Quiet &) = delete;
    Quiet &operator=(const Quiet &) = delete;

  private:
    NoSignals threads_have_none_;
    bool alone_;
};

}  // namespace bankml::capi
