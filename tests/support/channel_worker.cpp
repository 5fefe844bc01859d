// A worker that uses its connection to the agent as its words say: channel_worker WORD...
//
//   agent            prints "rank R: agent" or "rank R: no agent"
//   beat=N ready     heartbeat(N), report_ready(); only-beat=N for rank 0 alone
//   starting=N       heartbeat(N, Phase::Starting)
//   tell=TEXT        report_to_agent()
//   ignore-term      only prints SIGTERM and the result of should_stop() at that time
//   await-stop       waits for should_stop(), 20 s at most; await-term for the signal
//   mark=FILE        makes a file in $MARKS; await=FILE waits for one
//   spawn=HOW        runs the words "agent" in a child: "child", or "stranger" in its
//                    own session
//   keep=TEXT        writes it into its arena; keep-bytes=N makes the arena so large
//   use-huge-pages   requests them for an arena of 8 MiB, and prints the result
//   kept             prints what its arena holds; kept-of=R that of another local rank
//   can-save         can_save(); may-commit prints the answer of may_commit(7)
//   fell-back=N      report_resumed(N, "/step-N", true)
//   told=N           report_snapshot(N, "step-N"); await-newest waits for a notice of any worker
//   only=R           the words behind it are for local rank R
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

void say(const std::string& text) {
  ::printf("rank %d: %s\n", own_rank(), text.c_str());
  ::fflush(stdout);
}

template <class Condition>
void await(const std::string& what, Condition holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) {
      say("waited in vain for " + what);
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
    if (how == "stranger") ::setsid();
    ::execl(program, program, "agent", nullptr);
    ::_exit(127);
  }
  ::waitpid(child, nullptr, 0);
}

void keep(const std::string& text) {
  auto arena = worker::Arena::own(text.size() + 1);
  if (!arena) return say(arena.error().text);
  std::memcpy(arena->writable().data(), text.c_str(), text.size() + 1);
}

void say_kept(const cpprun::Result<worker::Arena>& arena) {
  if (!arena) return say(arena.error().text);
  const std::string_view bytes(reinterpret_cast<const char*>(arena->bytes().data()),
                               arena->bytes().size());
  say("kept '" + std::string(bytes.substr(0, bytes.find('\0'))) + "'" +
      (arena->outlives_process() ? "" : ", our own"));
}

// Keeps earlier text.
void use_huge_pages() {
  auto arena = worker::Arena::own(8 << 20);
  if (!arena) return say(arena.error().text);
  arena->use_huge_pages(arena->writable());
  say(cpprun::test::kib_in_huge_pages() > 0 ? "huge pages" : "no huge pages");
}

void obey_about_snapshots(const std::string& word, const std::string& value) {
  if (word == "keep") keep(value);
  if (word == "use-huge-pages") use_huge_pages();
  if (word == "keep-bytes") say_kept(worker::Arena::own(std::stoull(value)));
  if (word == "kept") say_kept(worker::Arena::own(0));
  if (word == "kept-of") say_kept(worker::Arena::of(std::stoi(value)));
  if (word == "can-save") worker::enable_graceful_stop();
  if (word == "told") worker::report_snapshot(std::stoll(value), "step-" + value);
  if (word == "fell-back") worker::report_resumed(std::stoll(value), "/step-" + value, true);
  if (word == "may-commit") {
    const worker::CommitPermission leave = worker::request_commit(7);
    say(leave ? "may commit" : "may not commit: " + leave.why);
  }
  if (word != "await-newest") return;
  await("a notice", [] { return worker::newest_snapshot().has_value(); });
  say("newest " + std::to_string(*worker::newest_snapshot()));
}

void obey(const std::string& word, const std::string& value, char* program) {
  if (word == "agent") say(worker::has_agent() ? "agent" : "no agent");
  if (word == "beat") worker::heartbeat(std::stoll(value));
  if (word == "only-beat" && own_rank() == 0) worker::heartbeat(std::stoll(value));
  if (word == "starting") worker::heartbeat(std::stoll(value), worker::Phase::Starting);
  if (word == "ready") worker::report_ready();
  if (word == "tell") worker::report_to_agent(value);
  if (word == "ignore-term") ::signal(SIGTERM, on_term);
  if (word == "mark") std::ofstream(mark(value)) << ::getpid() << '\n';
  if (word == "await") await(value, [&] { return std::ifstream(mark(value)).good(); });
  if (word == "spawn") spawn(value, program);
  if (word == "await-term") await("SIGTERM", [] { return has_term != 0; });
  obey_about_snapshots(word, value);
  if (word == "exit") ::exit(std::stoi(value));
  if (word != "await-stop") return;
  await("a stop", worker::should_stop);
  say("stopping");
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string whole = argv[i];
    const std::string word = whole.substr(0, whole.find('='));
    const std::string value = word == whole ? "" : whole.substr(word.size() + 1);
    if (word == "only" && std::stoi(value) != own_rank()) return 0;
    obey(word, value, argv[0]);
  }
}
