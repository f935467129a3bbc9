#include "bind/bind.h"

void register_kernels(nanobind::module_ &) {}
