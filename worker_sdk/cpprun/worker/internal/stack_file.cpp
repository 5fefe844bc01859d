#include "cpprun/worker/internal/stack_file.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpprun/worker/internal/fixed_text.hpp"
#include "cpprun/worker/internal/stack_trace.hpp"

namespace cpprun::worker {
namespace {

constexpr size_t kTextBytes = 32 * 1024;

// Set before the handler is installed.
int stack_file = -1;
char text_memory[kTextBytes];

void write_stack(int) {
  const int error = errno;
  FixedText text(text_memory, sizeof text_memory);
  put_stack_trace(text, nullptr);
  [[maybe_unused]] const ssize_t written =
      ::write(stack_file, text.view().data(), text.view().size());
  errno = error;
}

}  // namespace

void publish_stack_file(WorkerPage& page) {
  struct sigaction present {};
  if (::sigaction(kStackSignal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
  stack_file = ::memfd_create("cpprun-stack", MFD_CLOEXEC);
  if (stack_file < 0) return;
  prepare_stack_trace();
  struct sigaction action {};
  action.sa_handler = write_stack;
  action.sa_flags = SA_RESTART;  // system calls of libraries may not handle EINTR
  ::sigaction(kStackSignal, &action, nullptr);
  page.stack_file.store(static_cast<uint32_t>(stack_file) + 1, std::memory_order_release);
}

}  // namespace cpprun::worker
