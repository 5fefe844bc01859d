#include "common/signals.hpp"

#include <array>
#include <utility>

namespace cpprun {
namespace {

// x86-64 and arm64 Linux share these numbers.
constexpr std::array<std::pair<int, std::string_view>, 31> kSignals{{
    {1, "SIGHUP"},     {2, "SIGINT"},   {3, "SIGQUIT"},   {4, "SIGILL"},   {5, "SIGTRAP"},
    {6, "SIGABRT"},    {7, "SIGBUS"},   {8, "SIGFPE"},    {9, "SIGKILL"},  {10, "SIGUSR1"},
    {11, "SIGSEGV"},   {12, "SIGUSR2"}, {13, "SIGPIPE"},  {14, "SIGALRM"}, {15, "SIGTERM"},
    {16, "SIGSTKFLT"}, {17, "SIGCHLD"}, {18, "SIGCONT"},  {19, "SIGSTOP"}, {20, "SIGTSTP"},
    {21, "SIGTTIN"},   {22, "SIGTTOU"}, {23, "SIGURG"},   {24, "SIGXCPU"}, {25, "SIGXFSZ"},
    {26, "SIGVTALRM"}, {27, "SIGPROF"}, {28, "SIGWINCH"}, {29, "SIGIO"},   {30, "SIGPWR"},
    {31, "SIGSYS"},
}};

}  // namespace

std::string signal_name(int number) {
  for (auto [n, name] : kSignals) {
    if (n == number) return std::string(name);
  }
  return "signal " + std::to_string(number);
}

std::optional<int> signal_number(std::string_view name) {
  for (auto [n, known] : kSignals) {
    if (known == name) return n;
  }
  return std::nullopt;
}

}  // namespace cpprun
