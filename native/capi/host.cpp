#include "capi/host.h"

#include <stdlib.h>

#include <mutex>
#include <utility>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace bankml::capi {

namespace {

thread_local Arithmetic *innermost = nullptr;

constexpr const char *kBlasThreads = "OPENBLAS_NUM_THREADS";
std::mutex blas;          // of the two that follow
unsigned blas_alone = 0;  // how many want it so
bool blas_set = false;    // and the variable is ours, not the host's

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

Quiet::Quiet(bool alone) : alone_(alone) {
    if (!alone_) return;
    const std::lock_guard lock(blas);
    if (blas_alone++ == 0 && getenv(kBlasThreads) == nullptr) blas_set = setenv(kBlasThreads, "1", 0) == 0;
}

Quiet::~Quiet() {
    if (!alone_) return;
    const std::lock_guard lock(blas);
    if (--blas_alone == 0 && std::exchange(blas_set, false)) unsetenv(kBlasThreads);
}

}  // namespace bankml::capi
