#include "capi/host.h"

#include <clocale>
#include <cstring>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace bankml::capi {

namespace {

thread_local Arithmetic *innermost = nullptr;

}  // namespace

Arithmetic::Arithmetic() : outer_(innermost) {
    ours();
    innermost = this;
}

Arithmetic::~Arithmetic() {
    innermost = outer_;
    std::fesetenv(&host_);
}

void Arithmetic::ours() {
    std::fegetenv(&host_);
    std::fesetenv(FE_DFL_ENV);
#if defined(__SSE2__)
    _mm_setcsr(0x1f80);  // not every C library's default clears "denormals are zero"
#endif
}

HostsTurn::HostsTurn() : interrupted_(innermost) {
    if (interrupted_ != nullptr) std::fesetenv(&interrupted_->host_);
}

HostsTurn::~HostsTurn() {
    if (interrupted_ != nullptr) interrupted_->ours();
}

Manners::Manners() {
    for (int signal = 1; signal < NSIG; ++signal) {
        Handler &handler = handlers_[std::size_t(signal)];
        handler.known = sigaction(signal, nullptr, &handler.action) == 0;
    }
    if (const char *locale = std::setlocale(LC_ALL, nullptr)) locale_ = locale;
}

Manners::~Manners() {
    for (int signal = 1; signal < NSIG; ++signal) {
        const Handler &before = handlers_[std::size_t(signal)];
        struct sigaction now = {};
        if (!before.known || sigaction(signal, nullptr, &now) != 0) continue;
        const bool same = now.sa_handler == before.action.sa_handler && now.sa_flags == before.action.sa_flags;
        if (!same) sigaction(signal, &before.action, nullptr);
    }
    const char *now = std::setlocale(LC_ALL, nullptr);
    if (!locale_.empty() && (now == nullptr || locale_ != now)) std::setlocale(LC_ALL, locale_.c_str());
}

}  // namespace bankml::capi
