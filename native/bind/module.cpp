#include "bind/bind.h"

NB_MODULE(_native, m) {
    m.doc() = "bankML's compiled arithmetic, tokenizer and sampler; private to the bankml package.";
    register_kernels(m);
    register_tokenizer(m);
    register_sampler(m);
    register_grammar(m);
}
