#include "launcher/ssh/stdin_control.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "common/limits/ssh.hpp"
#include "common/machine/clock.hpp"
#include "common/thread/detached_thread.hpp"
#include "common/version.hpp"
#include "launcher/options/tokenizer.hpp"
#include "launcher/ssh/plan/control_lines.hpp"

namespace cpprun::ssh {
namespace {

Error launcher_is_gone() {
  return Error{ErrorKind::System,
               "standard input has ended before the job began: the launcher is gone"};
}

ssize_t read_some(int fd, char* buffer, size_t size) {
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

Status set_variable(const std::string& variable) {
  const size_t equals = variable.find('=');
  const std::string name = variable.substr(0, equals);
  if (::setenv(name.c_str(), variable.c_str() + equals + 1, 1) == 0) return {};
  return system_error("the variable " + name + " can't be set", errno);
}

// The first line of `text`, which it takes out; false: there is none yet.
bool take_line(std::string& text, std::string& line) {
  const size_t end = text.find('\n');
  if (end == std::string::npos) return false;
  line = text.substr(0, end);
  ::explicit_bzero(text.data(), end);  // it may hold the secret
  text.erase(0, end + 1);
  return true;
}

// Waits until the process has taken the signal: a second one of its kind would be the same one
// before that. Requires that this thread blocks it.
void wait_until_taken(int signal) {
  sigset_t pending;
  const Instant until = boot_now() + limits::kSignalTakenTimeout;
  while (::sigpending(&pending) == 0 && sigismember(&pending, signal) == 1 && boot_now() < until) {
    ::usleep(limits::kSignalTakenPoll.count() / 1'000);
  }
}

// On a thread of its own until the stream ends.
void pass_signals(int fd, std::string received) {
  std::array<char, 4096> buffer{};
  for (;;) {
    std::string line;
    while (take_line(received, line)) {
      const Result<ControlLine> parsed = parse_control_line(line);
      if (!parsed || parsed->kind != ControlLine::Kind::Signal) continue;
      ::kill(::getpid(), parsed->signal);
      wait_until_taken(parsed->signal);
    }
    const ssize_t got = read_some(fd, buffer.data(), buffer.size());
    if (got <= 0 || received.size() > limits::kControlLineBytes) break;
    received.append(buffer.data(), static_cast<size_t>(got));
  }
  ::kill(::getpid(), SIGTERM);
}

}  // namespace

bool StdinControl::is_asked_for(const std::vector<std::string>& args) {
  const auto may_be = [](const std::string& arg) {
    return arg.starts_with("--stdin-") || arg.starts_with("--stdin_");
  };
  if (std::ranges::none_of(args, may_be)) return false;
  const Result<TokenList> tokens = tokenize(args, Environment{});
  if (!tokens) return false;
  return std::ranges::any_of(
      tokens->options, [](const Token& token) { return token.option->name == "stdin-control"; });
}

Result<std::unique_ptr<StdinControl>> StdinControl::take() {
  constexpr int kFirstFree = 3;
  UniqueFd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kFirstFree));
  const UniqueFd empty(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.is_open() || !empty.is_open() || ::dup2(empty.get(), STDIN_FILENO) < 0)
    return system_error("standard input can't be taken (--stdin-control)", errno);
  std::unique_ptr<StdinControl> made(new StdinControl(std::move(input)));
  if (Status ok = made->read_header(); !ok) return ok.error();
  return made;
}

StdinControl::~StdinControl() { ::explicit_bzero(received_.data(), received_.size()); }

Result<std::string> StdinControl::read_line() {
  std::string line;
  std::array<char, 4096> buffer{};
  while (!take_line(received_, line)) {
    const ssize_t got = read_some(input_.get(), buffer.data(), buffer.size());
    if (got <= 0) return launcher_is_gone();
    total_ += static_cast<size_t>(got);
    if (total_ > limits::kControlHeaderBytes) {
      return Error{ErrorKind::Protocol, "standard input has more than " +
                                            std::to_string(limits::kControlHeaderBytes >> 20) +
                                            " MiB before the job begins (--stdin-control)"};
    }
    received_.append(buffer.data(), static_cast<size_t>(got));
    ::explicit_bzero(buffer.data(), buffer.size());
  }
  return line;
}

Status StdinControl::read_header() {
  for (;;) {
    Result<std::string> line = read_line();
    if (!line) return line.error();
    Result<ControlLine> parsed = parse_control_line(*line);
    ::explicit_bzero(line->data(), line->size());
    if (!parsed) return parsed.error();
    if (parsed->kind == ControlLine::Kind::End) return {};
    if (parsed->kind == ControlLine::Kind::Variable) {
      if (Status ok = set_variable(parsed->text); !ok) return ok;
    }
    if (parsed->kind != ControlLine::Kind::Secret) continue;
    Result<std::shared_ptr<const JobSecret>> secret = JobSecret::copy_of(parsed->text);
    ::explicit_bzero(parsed->text.data(), parsed->text.size());
    if (!secret) return secret.error();
    secret_ = std::move(*secret);
  }
}

bool StdinControl::wait_for_begin() {
  const std::string hello = hello_line(version());
  std::fputs(hello.c_str(), stdout);
  if (std::fflush(stdout) != 0) return false;
  for (;;) {
    const Result<std::string> line = read_line();
    if (!line) return false;
    const Result<ControlLine> parsed = parse_control_line(*line);
    if (!parsed) return false;
    if (parsed->kind == ControlLine::Kind::Begin) return true;
  }
}

Status StdinControl::watch() {
  return start_detached_thread([fd = input_.release(), received = std::move(received_)]() mutable {
    pass_signals(fd, std::move(received));
  });
}

}  // namespace cpprun::ssh
