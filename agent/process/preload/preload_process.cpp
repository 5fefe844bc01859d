#include "agent/process/preload/preload_process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/preload/preload_source.hpp"
#include "agent/process/proc_files.hpp"
#include "common/check.hpp"
#include "common/machine/reap.hpp"
#include "common/machine/sockets.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

constexpr size_t kMessageBytes = 1 << 16;
// Forked workers write their command line and environment over those of the preload process, which
// therefore leave room: for the variables of ranks, and for the arguments.
constexpr size_t kEnvironmentRoom = 16 * 1024;
constexpr size_t kArgumentRoomMax = 100 * 1024;  // the kernel allows 128 KiB for one argument
// Reads the program from the socket, which is its stdin. Its name keeps the interpreter from
// running it as the worker's __main__.
constexpr const char* kLoader =
    "import os;exec(compile(os.read(0,1<<20),'<cpprun preload>','exec'),"
    "{'__name__':'_cpprun_preload'})";

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<SocketPair> make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
    return system_error("socketpair", errno);
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool send_text(int socket, std::string_view text) {
  const auto sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(text.size());
}

// Each field with a zero byte behind it.
void append(std::string& text, std::string_view field) {
  text += field;
  text += '\0';
}

std::string settings_of(const PreloadPlan& plan, const std::string& program) {
  std::string text;
  append(text, std::to_string(::getpid()));
  append(text, plan.is_auto ? "auto" : "list");
  append(text, text::join(plan.modules, ","));
  append(text, program);
  for (size_t i = 1; i < plan.command.size(); ++i) append(text, plan.command[i]);
  text.pop_back();
  return text;
}

}  // namespace

PreloadProcess::PreloadProcess(Spawned spawned, UniqueFd socket)
    : pid_(spawned.pid), pidfd_(std::move(spawned.pidfd)), socket_(std::move(socket)) {}

Result<Spawned> PreloadProcess::spawn(const PreloadPlan& plan, const rlimit& descriptors,
                                      SpawnContext& context, StartTicket& ticket,
                                      UniqueFd& socket) {
  Result<SocketPair> sockets = make_pair();
  if (!sockets) return sockets.error();
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.is_open()) return system_error("/dev/null", errno);
  const size_t room = std::min(plan.argument_bytes, kArgumentRoomMax);
  const std::vector<std::string> argv{plan.command.front(), "-u", "-c", kLoader,
                                      std::string(room, ' ')};
  std::vector<std::string> environment = plan.environment;
  environment.push_back("CPPRUN_PRELOAD_ROOM=" + std::string(kEnvironmentRoom, ' '));
  Result<std::string> program = find_program(plan.command.front(), environment);
  if (!program) return program.error();
  SpawnPlan spawn{.program = *program, .argv = argv, .environment = environment};
  spawn.in = sockets->theirs.get();
  spawn.out = null.get();
  spawn.err = null.get();
  spawn.descriptors = &descriptors;
  spawn.ticket = &ticket;
  const std::string source =
      std::string(script_imports_source()) + "\n" + std::string(preload_source());
  const bool is_sent = send_text(sockets->ours.get(), source) &&
                       send_text(sockets->ours.get(), settings_of(plan, *program));
  if (!is_sent) return system_error("the preload process: its socket", errno);
  const HelperStart helper(ticket);
  Result<Spawned> spawned = context.spawn(spawn);
  if (!spawned) return spawned;
  register_helper(spawned->pid);
  socket = std::move(sockets->ours);
  return spawned;
}

void PreloadProcess::kill() const {
  ::kill(-pid_, SIGKILL);
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

// Waits for nothing: the orphan sweep reaps what has not ended yet.
PreloadProcess::~PreloadProcess() {
  kill();
  siginfo_t unused{};
  ::waitid(kPidfdType, static_cast<id_t>(pidfd_.get()), &unused, WEXITED | WNOHANG);
  unregister_helper(pid_);
}

std::vector<std::string> PreloadProcess::receive() {
  std::string buffer(kMessageBytes, '\0');
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  is_closed_ |= got == 0;
  if (got <= 0) return {};
  buffer.resize(static_cast<size_t>(got));
  return text::split(buffer, '\0');
}

bool PreloadProcess::request_check() { return send_text(socket_.get(), "check"); }

bool PreloadProcess::is_stopped() const {
  const Unblocking procfs("`stat` takes no lock of the process's memory");
  const auto stat = read_stat(pid_);
  return stat && (stat->state == 'T' || stat->state == 't');
}

std::string PreloadProcess::end_text() const {
  siginfo_t info{};
  ::waitid(kPidfdType, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG | WNOWAIT);
  if (info.si_code == CLD_EXITED) return "exit code " + std::to_string(info.si_status);
  return signal_name(info.si_status);
}

void PreloadProcess::note_shared_bytes(int worker) {
  if (shared_bytes_.load() == 0) shared_bytes_.store(shared_memory(worker).value_or(0));
}

Status PreloadProcess::request_workers(std::span<const int> gates) const {
  if (send_descriptors(socket_.get(), "fork", gates)) return {};
  if (errno == EPIPE || errno == ECONNRESET) {
    return Error{ErrorKind::System, "the preload process has ended"};
  }
  return system_error("the request to the preload process", errno);
}

}  // namespace cpprun
