// PreloadProcess: one preload process (preload.py), from its start to its end. It imports modules
// once, and then forks workers from itself.
//
// Messages over a SOCK_SEQPACKET socket pair, fields separated by zero bytes:
//   agent: its program (preload_source.hpp), then the settings: agent's pid, "auto" or "list",
//   modules
//     ("a,b.c"), the workers' command (PATH -u [-m] SCRIPT); then requests: "check", "start" with
//     five descriptors: specification, stdin, stdout, stderr, gate
//   process: "script" "awaits"|"free": whether the script may import one of the modules;
//     "importing" NAME; "ready" SECONDS BYTES MODULES;
//     "refused" "interpreter"|"script"|"unneeded"|"module" MODULE REASON, where "unneeded" is no
//     failure; "checked" PATH of a changed file, or nothing
// The specification is a memfd: argc, the arguments, the CPUs ("0,1"), the signals to ignore, the
// environment. Over its gate, a socket pair too, a new worker sends "P<pid>" once the agent is its
// parent, waits for "G", and sends "K" when its setup is complete, or "E<reason>".
//
// The process is a helper in the sense of helper_start.hpp; the destructor kills it and its group.
// Thread: the loop's, unless noted; any thread may destroy it.
#pragma once

#include <sys/resource.h>

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
  bool is_stopped() const;
  // How it ended: "signal 9", "exit code 3". Requires: it has ended.
  std::string end_text() const;

  // Returns when the worker's setup is complete; waits at most limits::kPreloadForkTimeout. A
  // worker that is not complete by then never begins its program. On an error the worker must be
  // spawned. ErrorKind::Timeout: this process can fork no others either. Any thread.
  Result<Spawned> fork_worker(const SpawnPlan& plan);

 private:
  Result<std::string> await(int gate, const StartTicket& ticket, Instant until) const;
  Status send_request(const SpawnPlan& plan, int gate) const;
  Result<Spawned> admit(const SpawnPlan& plan, int gate, Spawned worker, Instant until) const;

  const int pid_;
  const UniqueFd pidfd_;
  const UniqueFd socket_;
  bool is_closed_ = false;
};

}  // namespace cpprun
