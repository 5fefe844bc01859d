#include "launcher/ssh/child_process.hpp"

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
#include <utility>

#include "common/exit_code.hpp"
#include "common/limits/ssh.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/reap.hpp"
#include "common/text.hpp"

namespace cpprun::ssh {
namespace {

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

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(
    SpawnContext& context, const std::vector<std::string>& words,
    const std::vector<std::string>& environment, ProcessSink& sink) {
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
  std::unique_ptr<ChildProcess> made(new ChildProcess(sink));
  made->pid_ = spawned->pid;
  made->pidfd_ = std::move(spawned->pidfd);
  made->in_ = std::move(in->ours);
  made->out_ = std::move(out->ours);
  made->err_ = std::move(err->ours);
  return made;
}

ChildProcess::~ChildProcess() {
  ::explicit_bzero(unsent_.data(), unsent_.size());
  if (has_ended()) return;
  ChildProcess::kill();
  std::vector<pollfd> end{{pidfd_.get(), POLLIN, 0}};
  poll_until(end, leave_at_);
  if (end[0].revents != 0) reap(pid_);
}

void ChildProcess::send(std::string_view bytes) {
  if (!in_.is_open()) return;
  unsent_ += bytes;
  write_in();
}

void ChildProcess::write_in() {
  while (in_.is_open() && !unsent_.empty()) {
    const ssize_t n = ::send(in_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return close_input();  // it has ended; its exit status follows
    ::explicit_bzero(unsent_.data(), static_cast<size_t>(n));
    unsent_.erase(0, static_cast<size_t>(n));
  }
}

void ChildProcess::close_input() {
  ::explicit_bzero(unsent_.data(), unsent_.size());
  unsent_.clear();
  in_.reset();
}

void ChildProcess::kill() {
  if (!pidfd_.is_open()) return;
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0U);
  leave_at_ = std::min(leave_at_, boot_now() + limits::kSshKilledTimeout);
}

void ChildProcess::add_polled(std::vector<pollfd>& polled, bool reads_out, bool reads_err) const {
  polled.push_back({reads_out ? out_.get() : -1, POLLIN, 0});
  polled.push_back({reads_err ? err_.get() : -1, POLLIN, 0});
  polled.push_back({unsent_.empty() ? -1 : in_.get(), POLLOUT, 0});
  polled.push_back({pidfd_.get(), POLLIN, 0});
}

void ChildProcess::on_polled(const pollfd* entries, Instant now) {
  if (entries[0].revents != 0) read_stream(out_, now);
  if (entries[1].revents != 0) read_stream(err_, now);
  if (entries[2].revents != 0) write_in();
  if (entries[3].revents != 0) check_end(now);
  if (!has_ended() && now >= leave_at_) leave_behind(now);
}

ChildProcess::Read ChildProcess::read_stream(UniqueFd& fd, Instant now) {
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
  &fd == &out_ ? sink_.on_out(bytes, now) : sink_.on_err(bytes, now);
  return Read::More;
}

// What is in the pipes is read; their end is not awaited, because a process that ssh has started,
// such as the master of shared connections, may hold them open.
void ChildProcess::check_end(Instant now) {
  siginfo_t how{};
  const int got = ::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG);
  if (got != 0 || how.si_pid == 0) return;
  constexpr int kReadsMost = 8;  // more than a pipe holds
  for (UniqueFd* stream : {&err_, &out_}) {
    for (int i = 0; i < kReadsMost && read_stream(*stream, now) == Read::More; ++i) {
    }
  }
  close_all();
  ProcessEnd end;
  end.was_killed = how.si_code != CLD_EXITED;
  end.code = end.was_killed ? kSignalBase + how.si_status : how.si_status;
  sink_.on_end(end, now);
}

// It waits inside the kernel, or a tracer holds it.
void ChildProcess::leave_behind(Instant now) {
  sink_.on_err("cpprun: the process " + std::to_string(pid_) + " has not ended " +
                   text::seconds(limits::kSshKilledTimeout, 0) +
                   " after SIGKILL, and is left behind\n",
               now);
  close_all();
  ProcessEnd end;
  end.was_killed = true;
  end.code = kSignalBase + SIGKILL;
  sink_.on_end(end, now);
}

void ChildProcess::close_all() {
  close_input();
  out_.reset();
  err_.reset();
  pidfd_.reset();
  pid_ = 0;
}

void poll_until(std::vector<pollfd>& polled, Instant until) {
  const Duration left = until.is_never() ? Duration() : std::max(Duration(), until - boot_now());
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  ::ppoll(polled.data(), polled.size(), until.is_never() ? nullptr : &timeout, nullptr);
}

}  // namespace cpprun::ssh
