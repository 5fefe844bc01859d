#include "cpprun/worker/main.hpp"

#include <cxxabi.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/faults.hpp"
#include "cpprun/worker/internal/exception_text.hpp"
#include "cpprun/worker/internal/fatal_handlers.hpp"
#include "cpprun/worker/internal/malloc_tuning.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::detail {
namespace {

using namespace worker;

constexpr int kExitAfterException = 1;

void on_sigterm(int) { request_stop(); }

void handle_sigterm() {
  struct sigaction action {};
  action.sa_handler = on_sigterm;
  action.sa_flags = SA_RESTART;  // system calls of libraries may not handle EINTR
  ::sigaction(SIGTERM, &action, nullptr);
}

std::string on_one_line(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : text::split(text, '\n')) {
    if (!text::strip(line).empty()) lines.emplace_back(text::strip(line));
  }
  return text::join(lines, "; ");
}

void print_report(const ExceptionText& text, bool is_consequence, Reported reported) {
  const std::string message = on_one_line(text.message);
  ::fprintf(stderr, "cpprun: rank %d: %s%s\n", environment_or_default().rank, message.c_str(),
            is_consequence ? " (a peer has gone: look for its own error first)" : "");
  if (reported == Reported::Failed) {
    ::fprintf(stderr, "cpprun: the error file %s could not be written: %s\n", error_file(),
              std::strerror(errno));
  }
  if (reported != Reported::Written && !text.stack.empty()) {
    ::fprintf(stderr, "%s\n", text.stack.c_str());
  }
}

int report_exception(const std::exception_ptr& exception) {
  const ExceptionText text = describe_exception(exception);
  const bool is_consequence = is_peer_loss(text.message);
  const Reported reported = write_error_file(
      {.message = text.message, .stack = text.stack, .is_consequence = is_consequence});
  print_report(text, is_consequence, reported);
  if (reported == Reported::NoFile || reported == Reported::Failed) report_to_agent(text.message);
  return kExitAfterException;
}

}  // namespace

void start(const MainOptions& options) {
  // init_process_group reports a wrong environment; a program without process groups need not care.
  const Environment& known = environment_or_default();
  set_error_file(known.error_file);
  install_fatal_handlers(known.rank);
  if (options.handles_sigterm) handle_sigterm();
  // With SIGXFSZ ignored, a write beyond the file size limit fails like one to a full disk, so that
  // fault plans can test it; otherwise the signal ends the process.
  if (!known.faults.empty()) ::signal(SIGXFSZ, SIG_IGN);
  fault_point_at_start();
}

int run_main(Args args, const MainOptions& options, const std::function<int(Args)>& f) {
  tune_malloc(environ);
  try {
    start(options);
    return f(args);
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_exit unwinds with this exception
  } catch (...) {
    return report_exception(std::current_exception());
  }
}

}  // namespace cpprun::detail
