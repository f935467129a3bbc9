// The one compiled module, bankml._native: each family of functions registers itself.
#pragma once
#include <nanobind/nanobind.h>

void register_kernels(nanobind::module_ &m);    // model/: the pool, matrices, norms, activations
void register_formats(nanobind::module_ &m);    // model/: weight types, conversions
void register_attention(nanobind::module_ &m);  // model/: rope, K/V caches, attention
void register_pooling(nanobind::module_ &m);    // model/: from tokens' states to one vector
void register_tokenizer(nanobind::module_ &m);  // text/: pre-tokenizer and byte-pair merges
void register_sampler(nanobind::module_ &m);    // sampling/: the chain
void register_grammar(nanobind::module_ &m);    // grammar/: vocabulary masks
