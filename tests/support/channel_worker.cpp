// A worker that uses its connection to the agent by commands: channel_worker COMMAND...
//
//   agent            prints "rank R: agent" or "rank R: no agent"
//   beat=N ready     heartbeat(N), report_ready(); only-beat=N for rank 0 alone
//   starting=N       heartbeat(N, Phase::Starting)
//   report=TEXT      report_to_agent()
//   ignore-term      only prints SIGTERM and the result of should_stop() at that time
//   await-stop       waits for should_stop(), 20 s at most; await-term for the signal
//   mark=FILE        makes a file in $MARKS; await=FILE waits for one
//   spawn=HOW        runs the command "agent" in a child: "child", or "foreign" in its
//                    own session
//   keep=TEXT        writes it into its arena; keep-bytes=N makes the arena so large
//   use-huge-pages   requests them for an arena of 8 MiB, and prints the result
//   kept             prints what its arena holds; kept-of=R that of another local rank
//   can-save         can_save(); may-commit prints the answer of may_commit(7)
//   fell-back=N      report_resumed(N, "/step-N", true)
//   snapshot=N       report_snapshot(N, "step-N"); await-newest waits for a notice of any worker
//   only=R           the commands behind it are for local rank R
//   exit=N
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/arena.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "tests/support/huge_pages.hpp"

namespace {

namespace worker = cpprun::worker;

int own_rank() {
  const auto& environment = worker::environment();
  return environment ? environment->local_rank : -1;
}

void report(const std::string& text) {
  ::printf("rank %d: %s\n", own_rank(), text.c_str());
  ::fflush(stdout);
}

template <class Condition>
void await(const std::string& what, Condition holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) {
      report("waited in vain for " + what);
      ::exit(9);
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(2));  // tidy: allow sleep, because it is no test
  }
}

std::string mark(const std::string& name) {
  const char* folder = ::getenv("MARKS");
  return std::string(folder == nullptr ? "." : folder) + "/" + name;
}

volatile sig_atomic_t has_term = 0;

void on_term(int) {
  const char* text = worker::should_stop() ? "TERM, asked before\n" : "TERM, not asked\n";
  while (*text != 0) {
    if (::write(1, text++, 1) != 1) break;
  }
  has_term = 1;
}

void spawn(const std::string& how, char* program) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (how == "foreign") ::setsid();
    ::execl(program, program, "agent", nullptr);
    ::_exit(127);
  }
  ::waitpid(child, nullptr, 0);
}

void keep(const std::string& text) {
  auto arena = worker::Arena::own(text.size() + 1);
  if (!arena) return report(arena.error().text);
  std::memcpy(arena->writable().data(), text.c_str(), text.size() + 1);
}

void report_kept(const cpprun::Result<worker::Arena>& arena) {
  if (!arena) return report(arena.error().text);
  const std::string_view bytes(reinterpret_cast<const char*>(arena->bytes().data()),
                               arena->bytes().size());
  report("kept '" + std::string(bytes.substr(0, bytes.find('\0'))) + "'" +
         (arena->outlives_process() ? "" : ", our own"));
}

// Keeps earlier text.
void use_huge_pages() {
  auto arena = worker::Arena::own(8 << 20);
  if (!arena) return report(arena.error().text);
  arena->use_huge_pages(arena->writable());
  report(cpprun::test::kib_in_huge_pages() > 0 ? "huge pages" : "no huge pages");
}

void run_snapshot_command(const std::string& command, const std::string& value) {
  if (command == "keep") keep(value);
  if (command == "use-huge-pages") use_huge_pages();
  if (command == "keep-bytes") report_kept(worker::Arena::own(std::stoull(value)));
  if (command == "kept") report_kept(worker::Arena::own(0));
  if (command == "kept-of") report_kept(worker::Arena::of(std::stoi(value)));
  if (command == "can-save") worker::enable_graceful_stop();
  if (command == "snapshot") worker::report_snapshot(std::stoll(value), "step-" + value);
  if (command == "fell-back") worker::report_resumed(std::stoll(value), "/step-" + value, true);
  if (command == "may-commit") {
    const worker::CommitPermission leave = worker::request_commit(7);
    report(leave ? "may commit" : "may not commit: " + leave.why);
  }
  if (command != "await-newest") return;
  await("a notice", [] { return worker::newest_snapshot().has_value(); });
  report("newest " + std::to_string(*worker::newest_snapshot()));
}

void run_command(const std::string& command, const std::string& value, char* program) {
  if (command == "agent") report(worker::has_agent() ? "agent" : "no agent");
  if (command == "beat") worker::heartbeat(std::stoll(value));
  if (command == "only-beat" && own_rank() == 0) worker::heartbeat(std::stoll(value));
  if (command == "starting") worker::heartbeat(std::stoll(value), worker::Phase::Starting);
  if (command == "ready") worker::report_ready();
  if (command == "report") worker::report_to_agent(value);
  if (command == "ignore-term") ::signal(SIGTERM, on_term);
  if (command == "mark") std::ofstream(mark(value)) << ::getpid() << '\n';
  if (command == "await") await(value, [&] { return std::ifstream(mark(value)).good(); });
  if (command == "spawn") spawn(value, program);
  if (command == "await-term") await("SIGTERM", [] { return has_term != 0; });
  run_snapshot_command(command, value);
  if (command == "exit") ::exit(std::stoi(value));
  if (command != "await-stop") return;
  await("a stop", worker::should_stop);
  report("stopping");
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string whole = argv[i];
    const std::string command = whole.substr(0, whole.find('='));
    const std::string value = command == whole ? "" : whole.substr(command.size() + 1);
    if (command == "only" && std::stoi(value) != own_rank()) return 0;
    run_command(command, value, argv[0]);
  }
}
