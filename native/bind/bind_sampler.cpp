#include "bind/bind.h"

void register_sampler(nanobind::module_ &) {}
