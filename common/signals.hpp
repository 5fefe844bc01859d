// Names of Linux signals: "SIGTERM" <-> 15. Pure tables, so that cores can name a signal too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun {

inline constexpr int kLastSignal = 64;  // SIGRTMAX

// "SIGKILL"; "signal 40" for a number without a name.
std::string signal_name(int number);

// Accepts "SIGTERM" only, as Python's signal module names them; nothing for an unknown name.
std::optional<int> signal_number(std::string_view name);

}  // namespace cpprun
