// What belongs to the host program and is left as it was found: arithmetic, signal handlers, locale.
#pragma once
#include <array>
#include <cfenv>
#include <csignal>
#include <string>

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

// Puts back every signal's handler and the locale when it goes: around what starts Python, which minds neither.
class Manners {
  public:
    Manners();
    ~Manners();
    Manners(const Manners &) = delete;
    Manners &operator=(const Manners &) = delete;

  private:
    struct Handler {
        bool known = false;
        struct sigaction action = {};
    };
    std::array<Handler, NSIG> handlers_;
    std::string locale_;
};

}  // namespace bankml::capi
