#include "bind/bind.h"

void register_tokenizer(nanobind::module_ &) {}
