// cpprun::main: the frame around a training program.
//
//   int main(int argc, char** argv) {
//     return cpprun::main(argc, argv, [](cpprun::Args args) { ...; return 0; });
//   }
//
// It writes the error file that the launcher reads (torchelastic's JSON) for an exception that
// leaves `f`, for std::terminate and for fatal signals (with a stack); turns SIGTERM into
// worker::should_stop() for `stop_grace` if asked; carries out the fault of CPPRUN_FAULTS. Exit
// code: what `f` returns; 1 after an exception. Python counterpart: torch.distributed.elastic's
// @record.
#pragma once

#include <functional>
#include <type_traits>

namespace cpprun {

struct Args {
  int argc = 0;
  char** argv = nullptr;
};

struct MainOptions {
  bool handles_sigterm = false;  // true: SIGTERM only sets worker::should_stop()
  bool tunes_malloc =
      true;  // glibc keeps big blocks: 17 to 23 % less CPU on conv nets. CPPRUN_MALLOC=default: no
};

namespace detail {
int run_main(Args args, const MainOptions& options, const std::function<int(Args)>& f);
}

// `f` takes Args and returns int or nothing.
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
