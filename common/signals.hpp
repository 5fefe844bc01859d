// Names of Linux signals: "SIGTERM" <-> 15. Pure, so that cores can use it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun {

inline constexpr int kLastSignal = 64;  // SIGRTMAX
// Pure modules include no header of the operating system.
inline constexpr int kSigInt = 2;
inline constexpr int kSigQuit = 3;
inline constexpr int kSigAbort = 6;
inline constexpr int kSigKill = 9;

// "SIGKILL"; "signal 40" for a number without a name.
std::string signal_name(int number);

// Accepts names as in Python's signal module ("SIGTERM", not "TERM"); nullopt for an unknown name.
std::optional<int> signal_number(std::string_view name);

}  // namespace cpprun
