// Where the log goes: one sink for the process, or standard error.
//
// Any thread may log, set the sink, and do either from within a sink. Sinks are called without a lock held, so on several
// threads at once when several log. A change of the sink returns when no other thread is inside the sink that it replaced:
// what that one used may then be freed. A thread that changes the sink must therefore hold nothing the sink waits for.
#pragma once
#include <string_view>

namespace bankml::capi {

// A message of the library's own, as it stands: its % signs are no conversions. `level` is a BANKML_LOG_ number.
void log_message(int level, std::string_view message) noexcept;

}  // namespace bankml::capi
