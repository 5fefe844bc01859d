#include "launcher/ssh/remote_agent.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/exit_code.hpp"
#include "common/limits/ssh.hpp"
#include "launcher/ssh/plan/control_lines.hpp"

namespace cpprun::ssh {
namespace {

constexpr int kSshFailed = 255;

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

void make_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

// A socket pair for standard input: writing to it after the end of its reader is no SIGPIPE.
Result<Pair> make_input() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("no socket pair for ssh", errno);
  make_nonblocking(ends[0]);
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<Pair> make_output() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("no pipe for ssh", errno);
  make_nonblocking(ends[0]);
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void keep_end(std::string& text, size_t most) {
  if (text.size() > most) text.erase(0, text.size() - most);
}

}  // namespace

RemoteAgent::RemoteAgent(std::string host, bool is_local)
    : host_(std::move(host)),
      is_local_(is_local),
      out_lines_(host_ + ": "),
      err_lines_(host_ + ": ") {}

RemoteAgent::~RemoteAgent() {
  ::explicit_bzero(unsent_.data(), unsent_.size());
  if (!has_process()) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status RemoteAgent::start(SpawnContext& context, const std::vector<std::string>& words,
                          const std::vector<std::string>& environment, std::string header,
                          Instant now) {
  Result<std::string> program = find_program(words.front(), environment);
  if (!program) return program.error();
  Result<Pair> in = make_input();
  Result<Pair> out = make_output();
  Result<Pair> err = make_output();
  for (const Result<Pair>* pair : {&in, &out, &err}) {
    if (!*pair) return pair->error();
  }
  SpawnPlan plan{*program, words, environment};
  plan.in = in->theirs.get();
  plan.out = out->theirs.get();
  plan.err = err->theirs.get();
  Result<Spawned> spawned = context.spawn(plan);
  if (!spawned) return spawned.error();
  pid_ = spawned->pid;
  pidfd_ = std::move(spawned->pidfd);
  in_ = std::move(in->ours);
  out_ = std::move(out->ours);
  err_ = std::move(err->ours);
  state_ = State::Starting;
  started_at_ = now;
  unsent_ = std::move(header);
  write_in();
  return {};
}

void RemoteAgent::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  kill();
  if (!has_process()) state_ = State::Ended;
}

void RemoteAgent::begin() {
  if (state_ != State::Ready) return;
  state_ = State::Running;
  send(kBeginLine);
}

void RemoteAgent::send_signal(int number) {
  if (state_ == State::Running) send(signal_line(number));
}

void RemoteAgent::send(std::string_view text) {
  if (!in_.is_open() || unsent_.size() > limits::kControlHeaderBytes) return;
  unsent_ += text;
  write_in();
}

void RemoteAgent::write_in() {
  while (in_.is_open() && !unsent_.empty()) {
    const ssize_t n = ::send(in_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return close_input();  // ssh has ended; its exit status follows
    ::explicit_bzero(unsent_.data(), static_cast<size_t>(n));
    unsent_.erase(0, static_cast<size_t>(n));
  }
}

void RemoteAgent::close_input() {
  ::explicit_bzero(unsent_.data(), unsent_.size());
  unsent_.clear();
  in_.reset();
}

void RemoteAgent::kill() {
  if (pidfd_.is_open()) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0U);
}

RemoteAgent::Read RemoteAgent::read_stream(UniqueFd& fd, Instant now, Text& text) {
  std::array<char, 64 * 1024> buffer;
  if (!fd.is_open()) return Read::End;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return Read::More;
  if (got < 0 && errno == EAGAIN) return Read::Nothing;
  if (got <= 0) {
    fd.reset();
    return Read::End;
  }
  const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
  &fd == &out_ ? on_out(bytes, now, text) : on_err(bytes, now, text);
  return Read::More;
}

void RemoteAgent::read_out(Instant now, Text& text) { read_stream(out_, now, text); }
void RemoteAgent::read_err(Instant now, Text& text) { read_stream(err_, now, text); }

void RemoteAgent::on_out(std::string_view bytes, Instant now, Text& text) {
  if (state_ != State::Starting) {
    text.out += out_lines_.feed(bytes, now);
    return;
  }
  received_ += bytes;
  for (size_t end = 0; (end = received_.find('\n')) != std::string::npos;) {
    const std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    if (std::optional<std::string> version = version_of_hello(line)) {
      version_ = std::move(*version);
      state_ = State::Ready;
      text.out += out_lines_.feed(received_, now);
      received_.clear();
      return;
    }
    if (!line.empty()) login_text_ += line + "\n";
    keep_end(login_text_, limits::kLoginTextBytes);
  }
  keep_end(received_, limits::kLoginTextBytes);
}

void RemoteAgent::on_err(std::string_view bytes, Instant now, Text& text) {
  if (state_ == State::Starting) {
    errors_ += bytes;
    keep_end(errors_, limits::kSshErrorBytes);
  }
  text.err += err_lines_.feed(bytes, now);
}

void RemoteAgent::show_parts(Instant now, Text& text) {
  if (now >= out_lines_.part_deadline()) text.out += out_lines_.show_part(now);
  if (now >= err_lines_.part_deadline()) text.err += err_lines_.show_part(now);
}

Instant RemoteAgent::part_deadline() const {
  return std::min(out_lines_.part_deadline(), err_lines_.part_deadline());
}

// What is in the pipes is shown; their end is not awaited, because a process that ssh has started,
// such as the master of shared connections, may hold them open.
void RemoteAgent::on_end(Instant now, Text& text) {
  siginfo_t how{};
  const int got = ::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG);
  if (got != 0 || how.si_pid == 0) return;
  const bool was_killed = how.si_code != CLD_EXITED;
  exit_code_ = was_killed ? kSignalBase + how.si_status : how.si_status;
  is_lost_ = was_killed || (!is_local_ && exit_code_ == kSshFailed);
  constexpr int kReadsMost = 8;  // more than a pipe holds
  for (UniqueFd* stream : {&err_, &out_}) {
    for (int i = 0; i < kReadsMost && read_stream(*stream, now, text) == Read::More; ++i) {
    }
  }
  text.out += out_lines_.finish();
  text.err += err_lines_.finish();
  close_input();
  out_.reset();
  err_.reset();
  pidfd_.reset();
  pid_ = 0;
  state_ = State::Ended;
}

}  // namespace cpprun::ssh
