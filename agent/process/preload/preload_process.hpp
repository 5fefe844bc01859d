// PreloadProcess: one preload process (preload.py), from its start to its end. It imports modules
// once, and then forks workers from itself.
//
// Messages over a SOCK_SEQPACKET socket pair, fields separated by zero bytes:
//   agent: its program (preload_source.hpp), then the settings: agent's pid, "auto" or "list",
//     modules ("a,b.c"), the workers' command (PATH -u [-m] SCRIPT); then requests: "check", "fork"
//     with a gate for each worker (fork_batch.hpp)
//   process: "script" "awaits"|"free": whether the script may import one of the modules;
//     "importing" NAME; "ready" SECONDS MODULES;
//     "refused" "interpreter"|"script"|"unneeded"|"module" MODULE REASON, where "unneeded" is no
//     failure; "checked" PATH of a changed file, or nothing
//
// The process is a helper in the sense of helper_start.hpp; the destructor kills it and its group.
// Thread: the loop's, unless noted; any thread may destroy it.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/process/spawn/spawn.hpp"
#include "agent/process/spawn/start_ticket.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

struct PreloadPlan {
  std::vector<std::string> command;      // of the workers: python -u [-m] SCRIPT
  std::vector<std::string> environment;  // what all workers have in common, with the token
  std::vector<std::string> modules;      // empty, and is_auto: those that the script imports
  bool is_auto = false;
  size_t argument_bytes = 0;  // of a worker's command line
};

class PreloadProcess {
 public:
  // Starts one, as a start of the spawn thread (spawn_thread.hpp). `descriptors`: RLIMIT_NOFILE of
  // the workers. `socket` gets the agent's end.
  static Result<Spawned> spawn(const PreloadPlan& plan, const rlimit& descriptors,
                               SpawnContext& context, StartTicket& ticket, UniqueFd& socket);
  // What spawn() has started.
  PreloadProcess(Spawned spawned, UniqueFd socket);
  ~PreloadProcess();
  PreloadProcess(const PreloadProcess&) = delete;

  void kill() const;
  int pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }    // readable: it has ended
  int socket() const { return socket_.get(); }  // readable: receive() has a message

  // The fields of the next message; empty: there is none now.
  std::vector<std::string> receive();
  bool has_closed() const { return is_closed_; }  // its end of the socket
  bool request_check();                           // false: it takes no more requests
  bool is_stopped() const;                        // any thread
  // How it ended: "signal 9", "exit code 3". Requires: it has ended.
  std::string end_text() const;

  // Makes the process fork a worker for each gate, at most limits::kPreloadBatch. Any thread.
  Status request_workers(std::span<const int> gates) const;

  // Memory that a forked worker shares with others: Rss minus Pss. 0: not measured yet. The first
  // call measures it, which takes milliseconds. Any thread.
  void note_shared_bytes(int worker);
  int64_t shared_bytes() const { return shared_bytes_.load(); }

 private:
  const int pid_;
  const UniqueFd pidfd_;
  const UniqueFd socket_;
  bool is_closed_ = false;
  std::atomic<int64_t> shared_bytes_ = 0;
};

}  // namespace cpprun
