#include "agent/process/preload/fork_batch.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "agent/process/proc_files.hpp"
#include "common/check.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/reap.hpp"
#include "common/machine/sockets.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

std::string comma_list(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

void append_field(std::string& text, std::string_view field) {
  text += field;
  text += '\0';
}

std::string specification_of(const SpawnPlan& plan) {
  std::string text;
  append_field(text, std::to_string(plan.argv.size()));
  for (const std::string& word : plan.argv) append_field(text, word);
  append_field(text, comma_list(plan.cpus));
  append_field(text, comma_list(plan.ignored));
  for (const std::string& entry : plan.environment) append_field(text, entry);
  return text;
}

Result<UniqueFd> memory_with(const std::string& text) {
  UniqueFd memory(::memfd_create("cpprun-worker", MFD_CLOEXEC));
  if (!memory.is_open()) return system_error("memfd_create", errno);
  if (Status written = write_all(memory.get(), text); !written) return written.error();
  return memory;
}

Status join_cgroup(int folder, int pid) {
  const UniqueFd procs(::openat(folder, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(pid);
  if (!procs.is_open() || ::write(procs.get(), text.data(), text.size()) < 0) {
    return system_error("joining the cgroup", errno);
  }
  return {};
}

void kill_and_reap(const Spawned& worker, StartTicket& ticket) {
  ::syscall(SYS_pidfd_send_signal, worker.pidfd.get(), SIGKILL, nullptr, 0);
  ticket.on_child_ended();
  siginfo_t unused{};
  while (::waitid(kPidfdType, static_cast<id_t>(worker.pidfd.get()), &unused, WEXITED) < 0 &&
         errno == EINTR) {
  }
}

// Sends the worker its specification and its streams.
Status let_go(const SpawnPlan& plan, int gate) {
  Result<UniqueFd> specification = memory_with(specification_of(plan));
  if (!specification) return specification.error();
  const std::array<int, 4> descriptors{specification->get(), plan.in, plan.out, plan.err};
  if (send_descriptors(gate, "G", descriptors)) return {};
  return Error{ErrorKind::System, "the new process has ended"};
}

Error failure(std::string text) { return Error{ErrorKind::System, std::move(text)}; }

}  // namespace

ForkBatch::ForkBatch(std::shared_ptr<PreloadProcess> process, size_t workers)
    : process_(std::move(process)), left_(workers) {}

Status ForkBatch::request_workers() {
  const size_t count = std::clamp(left_, size_t{1}, limits::kPreloadBatch);
  left_ -= std::min(left_, count);
  std::deque<UniqueFd> ours;
  std::vector<UniqueFd> theirs;
  std::vector<int> gates;
  for (size_t i = 0; i < count; ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
      return system_error("socketpair", errno);
    }
    ours.emplace_back(ends[0]);
    theirs.emplace_back(ends[1]);
    gates.push_back(ends[1]);
  }
  if (Status sent = process_->request_workers(gates); !sent) return sent;
  gates_ = std::move(ours);
  return {};
}

Result<Spawned> ForkBatch::fork_worker(const SpawnPlan& plan) {
  CPPRUN_CHECK(plan.ticket != nullptr);
  if (broken_) return *broken_;
  Result<Spawned> forked = take_worker(plan, boot_now() + limits::kPreloadForkTimeout);
  if (!forked && forked.error().kind == ErrorKind::Timeout) broken_ = forked.error();
  return forked;
}

Result<Spawned> ForkBatch::take_worker(const SpawnPlan& plan, Instant until) {
  const Instant started_at = boot_now();
  if (gates_.empty()) {
    if (Status sent = request_workers(); !sent) return sent.error();
  }
  const UniqueFd gate = std::move(gates_.front());
  gates_.pop_front();
  Result<std::string> hello = await(gate.get(), *plan.ticket, until);
  if (!hello) return hello.error();
  const auto pid = text::parse_int(std::string_view(*hello).substr(1));
  if (hello->front() != 'P' || !pid) return failure("the preload process sent: " + *hello);
  Spawned worker{static_cast<int>(*pid), {}, started_at};
  worker.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, worker.pid, 0)));
  if (!worker.pidfd.is_open()) return system_error("the new worker's handle", errno);
  const auto stat = read_stat(worker.pid);
  if (!stat || stat->parent != ::getpid()) return failure("the new process has ended");
  return admit(plan, gate.get(), std::move(worker), until);
}

Result<Spawned> ForkBatch::admit(const SpawnPlan& plan, int gate, Spawned worker, Instant until) {
  if (!plan.ticket->begin_child(worker.pid)) {
    kill_and_reap(worker, *plan.ticket);
    return system_error("the start", ECANCELED);
  }
  // The last one, because they all share the memory now. It runs no code of the user yet.
  if (gates_.empty()) process_->note_shared_bytes(worker.pid);
  Status joined = plan.cgroup < 0 ? Status() : join_cgroup(plan.cgroup, worker.pid);
  if (joined) joined = let_go(plan, gate);
  Result<std::string> done =
      joined ? await(gate, *plan.ticket, until) : Result<std::string>(joined.error());
  if (done && *done != "K") done = failure("the new process sent: " + *done);
  if (done) return worker;
  kill_and_reap(worker, *plan.ticket);
  return done.error();
}

// The next message over the gate. The preload process may be stopped or killed at any moment.
Result<std::string> ForkBatch::await(int gate, const StartTicket& ticket, Instant until) const {
  constexpr int kSliceMs = 100;
  for (;;) {
    pollfd event{gate, POLLIN, 0};
    if (::poll(&event, 1, kSliceMs) == 1) break;
    if (ticket.is_cancelled()) return system_error("the start", ECANCELED);
    if (process_->is_stopped()) return Error{ErrorKind::Timeout, "the preload process is stopped"};
    if (boot_now() >= until)
      return Error{ErrorKind::Timeout, "the preload process does not answer"};
  }
  std::array<char, 1024> buffer{};
  const ssize_t got = ::recv(gate, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got <= 0) return failure("the new process has ended");
  const std::string text(buffer.data(), static_cast<size_t>(got));
  if (text.front() == 'E') return failure(text.substr(1));
  return text;
}

}  // namespace cpprun
