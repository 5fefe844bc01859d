#include "cpprun/worker/internal/fatal_handlers.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>

#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/internal/error_json.hpp"
#include "cpprun/worker/internal/exception_text.hpp"
#include "cpprun/worker/internal/stack_trace.hpp"

namespace cpprun::worker {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kHandlerStack = 128 * 1024;  // a report uses less than 16 KiB of stack
constexpr unsigned kReportSeconds = 5;        // the stack may be corrupt, the disk may hang

// Set before the handlers are installed, read by them.
std::atomic<uint64_t> own_rank{0};
std::atomic<int> fatal_signal{0};  // the signal that is being reported
std::atomic<pid_t> reporting_thread{0};
std::atomic<bool> gave_up{false};
std::string_view report_message;  // message of the report, set by the reporting thread
char message_memory[1024];
char stack_memory[kStackBytes];
char line_memory[kStackBytes + 2048];

void unblock(int signal) {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

[[noreturn]] void die(int signal) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  unblock(signal);
  ::raise(signal);
  ::_exit(128 + signal);
}

// Writes one line if a file has the rest, otherwise everything.
void print_report(const ErrorText& text, Reported reported) noexcept {
  if (reported == Reported::NotTheFirst) return;
  FixedText line(line_memory, sizeof line_memory);
  line.put("cpprun: rank ").put_number(own_rank.load()).put(": ").put(text.message).put("\n");
  if (reported != Reported::Written) line.put(text.stack);
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, line.view().data(), line.view().size());
}

// The report itself failed or takes too long: reports without a stack.
[[noreturn]] void give_up() {
  if (!gave_up.exchange(true)) {
    const ErrorText text{.message = report_message, .stack = "  (the stack could not be read)\n"};
    print_report(text, write_error_file(text));
  }
  die(fatal_signal.load());
}

void on_alarm(int) { give_up(); }

void start_watchdog() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, nullptr);
  unblock(SIGALRM);
  ::alarm(kReportSeconds);
}

void put_cause(FixedText& to, int signal, const siginfo_t& info) {
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  const bool is_sent = info.si_code <= 0;  // sent by kill, raise or abort, not caused by a fault
  if (is_sent && info.si_pid != ::getpid()) {
    to.put("sent by process ").put_number(static_cast<uint64_t>(info.si_pid));
  } else if (is_sent) {
    to.put(signal == SIGABRT ? "abort() was called" : "raised by the program itself");
  } else if (signal == SIGFPE) {
    to.put("arithmetic error, such as a division by zero");
  } else if (signal == SIGILL) {
    to.put("illegal instruction at ").put_hex(address);
  } else {
    to.put("invalid access to memory at ").put_hex(address);
  }
}

std::string_view name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "SIGABRT";
  }
}

void report(const Interrupted* interrupted) noexcept {
  FixedText stack(stack_memory, sizeof stack_memory);
  put_stack_trace(stack, interrupted);
  const ErrorText text{.message = report_message, .stack = stack.view()};
  print_report(text, write_error_file(text));
}

void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  pid_t reporter = 0;
  if (!reporting_thread.compare_exchange_strong(reporter, ::gettid())) {
    if (reporter == ::gettid()) give_up();
    for (;;) ::pause();  // the reporting thread ends the process
  }
  fatal_signal.store(signal);
  start_watchdog();
  FixedText message(message_memory, sizeof message_memory);
  message.put(name_of(signal)).put(": ");
  put_cause(message, signal, *info);
  report_message = message.view();
  const Interrupted place = interrupted_at(context);
  report(&place);
  die(signal);
}

std::string termination() {
  const std::exception_ptr exception = std::current_exception();
  if (exception) return "std::terminate: " + describe_exception(exception).message;
  return "std::terminate was called without an exception (a std::thread that was not joined, a "
         "pure virtual function)";
}

// Reports here, because the exception is known here. The handler of abort()'s signal would find
// this thread reporting already.
[[noreturn]] void on_terminate() {
  pid_t reporter = 0;
  if (reporting_thread.compare_exchange_strong(reporter, ::gettid())) {
    fatal_signal.store(SIGABRT);
    start_watchdog();
    const std::string message = termination();
    report_message = message;
    report(nullptr);
    die(SIGABRT);
  }
  std::abort();
}

// A stack overflow leaves no room for a handler on the same stack. Other threads than the main
// thread have no handler stack, so their overflow is not reported.
void give_main_thread_a_handler_stack() {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  void* memory = ::mmap(nullptr, kHandlerStack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t own{};
  own.ss_sp = memory;
  own.ss_size = kHandlerStack;
  ::sigaltstack(&own, nullptr);
}

void handle(int signal) {
  struct sigaction present {};
  ::sigaction(signal, nullptr, &present);
  if (present.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  // SA_NODEFER: a fault inside the handler must call it again, not end the process by another
  // signal.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void set_reported_rank(int rank) { own_rank.store(static_cast<uint64_t>(rank)); }

void install_fatal_handlers(int rank) {
  set_reported_rank(rank);
  prepare_stack_trace();
  give_main_thread_a_handler_stack();
  for (const int signal : kSignals) handle(signal);
  std::set_terminate(on_terminate);
}

}  // namespace cpprun::worker
