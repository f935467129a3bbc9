// GELU of every f16 value, rounded to f16 and widened again: the table that ggml's GELU is looked up in.
#pragma once

namespace bankml {

inline constexpr float gelu_limit = 10.0f;  // from here on gelu(x) is x, and 0 from its negative down

const float *gelu_table();  // [65536], by the f16's bits; made when it is first asked for

}  // namespace bankml
