#include "bind/bind.h"

NB_MODULE(_native, m) {
    // A server ends with its model loaded; what the process still holds at exit is no leak.
    nanobind::set_leak_warnings(false);
    m.doc() = "bankML's compiled arithmetic, tokenizer and sampler; private to the bankml package.";
    register_formats(m);
    register_kernels(m);
    register_attention(m);
    register_pooling(m);
    register_tokenizer(m);
    register_sampler(m);
    register_grammar(m);
}
