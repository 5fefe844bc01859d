/// @file
/// cpprun::main: wraps the main function of a training program.
///
///     int main(int argc, char** argv) {
///       return cpprun::main(argc, argv, [](cpprun::Args args) { ...; return 0; });
///     }
///
/// It writes the error file that the launcher reads (error_file.hpp) for an exception that leaves
/// `f`, for std::terminate and for fatal signals (with a stack; the process still ends by that
/// signal). It turns SIGTERM into worker::should_stop() if MainOptions asks for it, and carries out
/// faults of CPPRUN_FAULTS that match the start.
///
/// Exit code: what `f` returns, or 1 after an exception, with one line on stderr. Return
/// kStoppedResumable (75) after a stop request, once the snapshot is committed.
///
/// Memory: glibc keeps freed blocks instead of returning them to the kernel at every step, which
/// saves 17 to 23 % CPU on convolutional nets. CPPRUN_MALLOC=default, or MALLOC_... variables of
/// the user, disable that. Python counterpart: `@record` of torch.distributed.elastic.
#pragma once

#include <functional>
#include <type_traits>

#include "common/exit_code.hpp"

namespace cpprun {

/// The arguments of the program's main.
struct Args {
  int argc = 0;           ///< number of entries of argv
  char** argv = nullptr;  ///< ends with a null pointer
};

/// Options of cpprun::main.
struct MainOptions {
  /// SIGTERM only makes worker::should_stop() true; the launcher sends SIGKILL after its
  /// --shutdown-timeout.
  bool handles_sigterm = false;
};

namespace detail {
// Prepares reports, installs the signal handlers, carries out a fault that matches the start.
void start(const MainOptions& options);
int run_main(Args args, const MainOptions& options, const std::function<int(Args)>& f);
}  // namespace detail

/// `f` takes Args and returns int or void. Call it once, as the whole body of the program's main.
template <class F>
int main(int argc, char** argv, F&& f, const MainOptions& options = {}) {
  return detail::run_main({argc, argv}, options, [&f](Args args) {
    if constexpr (std::is_void_v<std::invoke_result_t<F, Args>>) {
      f(args);
      return 0;
    } else {
      return static_cast<int>(f(args));
    }
  });
}

}  // namespace cpprun
