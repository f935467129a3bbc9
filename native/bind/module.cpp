#include "bind/bind.h"

NB_MODULE(_native, m) {
    m.doc() = "bankML's compiled arithmetic, tokenizer and sampler; private to the bankml package.";
    // What a program still holds when it ends is no leak worth a word on its stderr.
    nanobind::set_leak_warnings(false);
    register_kernels(m);
    register_tokenizer(m);
    register_sampler(m);
}
