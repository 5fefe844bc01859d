// cpprun::main: the frame around a training program.
//
//   int main(int argc, char** argv) {
//     return cpprun::main(argc, argv, [](cpprun::Args args) { ...; return 0; });
//   }
//
// It writes the error file that the launcher reads (torchelastic's JSON) for an exception that
// leaves `f`, for std::terminate and for fatal signals (with a stack, and still ending by that
// signal); turns SIGTERM into worker::should_stop() if asked; carries out a fault of CPPRUN_FAULTS
// that fits the start. Exit code: what `f` returns; 1 after an exception, with one line on stderr.
// kStoppedResumable (75) is the code to return after a stop request, once the snapshot is
// committed. glibc keeps freed blocks instead of giving them back each step: 17 to 23 % less CPU on
// convolutional nets; CPPRUN_MALLOC=default, or own MALLOC_... variables, leave it alone. Python
// counterpart: torch.distributed.elastic's @record.
#pragma once

#include <functional>
#include <type_traits>

#include "common/exit_code.hpp"

namespace cpprun {

struct Args {
  int argc = 0;
  char** argv = nullptr;
};

struct MainOptions {
  // SIGTERM only sets worker::should_stop(); the launcher kills after its --shutdown-timeout.
  bool handles_sigterm = false;
};

namespace detail {
// What comes before `f`: reports are prepared, signals handled, a fault that fits.
void start(const MainOptions& options);
int run_main(Args args, const MainOptions& options, const std::function<int(Args)>& f);
}  // namespace detail

// `f` takes Args and returns int or nothing. Call it once, as all that the program's main does.
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
