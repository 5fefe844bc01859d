// SshLauncher: runs the agents of --hosts. It starts one on each host, waits until all have sent
// their hello, lets the job begin, merges their output, passes signals on, and ends with the job's
// exit code. A host that cannot be reached is left out if --nnodes allows. Such a host, and one
// that is lost while the job continues, is tried again, and joins when it can be reached. With
// --ssh-tree some hosts run a relay, which starts the agents of others.
//
// Thread: the main thread, which polls. The agents end when this process does: the kernel kills the
// ssh processes, and the agents see the end of their standard input.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/spawn/spawn.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "launcher/ssh/merged_output.hpp"
#include "launcher/ssh/plan/launch_plan.hpp"
#include "launcher/ssh/process.hpp"
#include "launcher/ssh/relay.hpp"
#include "launcher/ssh/remote_agent.hpp"

namespace cpprun::ssh {

class SshLauncher {
 public:
  // `environment`: of the ssh processes, and of the agent on this machine.
  static Result<std::unique_ptr<SshLauncher>> make(LaunchPlan plan,
                                                   std::vector<std::string> environment);
  ~SshLauncher();
  // Returns the exit code.
  int run();

 private:
  SshLauncher(LaunchPlan plan, std::vector<std::string> environment, UniqueFd signals);

  // ---- start
  Status prepare_attempt();
  Status add_agent(size_t rank);
  std::string name_of_first();  // of the first host, as ssh resolves it
  void start_some();
  void check_start(size_t index, Instant now);
  void fail(size_t index, const std::string& why);
  bool are_all_settled() const;
  bool leave_failed_hosts_out();  // false: too few are left
  void expect_left_out_hosts();
  void abandon();  // ends all agents, which have not begun
  void kill_all();
  std::optional<int> start_all();
  int stopped_code() const;

  // ---- the tree of connections: without --ssh-tree there are no relays
  bool is_inner(size_t index) const;      // it reaches other hosts
  Relay* relay_to(size_t index) const;    // by which the host is reached; null: from this machine
  bool is_way_known(size_t index) const;  // relay_to() is final
  bool has_lost_way(size_t index) const;
  const std::string& login_text(size_t index) const;
  void start(size_t index);
  void start_by_own_relay(size_t index, const std::string& via);
  Result<std::unique_ptr<Process>> start_process(Relay* relay,
                                                 const std::vector<std::string>& words,
                                                 ProcessSink& sink);
  void check_relay(size_t index, Instant now);

  // ---- run
  int supervise();
  void on_agent_end(size_t index);
  int running() const;  // the number of agents
  bool is_any_running() const { return running() > 0; }
  bool can_continue() const;  // with the agents that are left
  void check_loss(size_t index, bool continues);
  bool may_return(size_t index) const;
  void expect_return(size_t index);  // tries the host again later
  void try_returns(Instant now);
  // What ssh prints at each attempt to reach a lost host is not shown.
  bool is_returning(size_t index) const {
    return index < returns_.size() && returns_[index].is_under_way;
  }
  void stop_all(int signal);
  int exit_code() const;

  // ---- polling
  void step(Instant until);
  void poll_processes(Instant until);
  void take_signals();
  // On stderr. `kind`: how the text begins, such as "error: "; its hint is a line of its own.
  void print(const char* kind, const std::string& text);
  void report(const std::string& text) { print("cpprun: ", text); }
  void show(const RemoteAgent::Text& text);
  bool must_wait(const MergedOutput& output) const;
  void finish_output();
  Instant next_deadline() const;

  // A host that is lost or was left out, by agent.
  struct Return {
    Instant at = Instant::never();  // of the next attempt
    int attempts = 0;
    bool is_under_way = false;  // the agent there has been started, and has not begun
    bool was_left_out = false;  // it has not been part of the job yet
  };

  struct Command {
    std::vector<std::string> direct;    // on the host itself
    std::vector<std::string> over_ssh;  // empty: this machine is the host
  };

  LaunchPlan plan_;
  const std::vector<std::string> environment_;
  const UniqueFd signals_;
  SpawnContext context_;
  MergedOutput out_;
  MergedOutput err_;
  std::vector<std::unique_ptr<RemoteAgent>> agents_;
  // By agent: what runs it; the host that reaches its host; the relay on its host.
  std::vector<Command> commands_;
  std::vector<std::optional<size_t>> parents_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<Return> returns_;  // by agent
  std::vector<Host> left_out_;   // by the attempts to start
  std::string endpoint_;         // where the agents meet
  std::string header_;           // holds the secret

  int stop_signal_ = 0;  // the first one that this process got, or sent to the agents by itself
  int interrupts_ = 0;   // SIGINT and SIGQUIT
  bool is_running_ = false;
  std::optional<int> first_failure_;
  int succeeded_ = 0;
  Instant others_deadline_ = Instant::never();
  Instant kill_at_ = Instant::never();
  Instant discard_at_ = Instant::never();  // then output that is not read is dropped
};

// The whole of --hosts: reads the plan, and runs it.
int run_over_ssh(const LaunchOverSsh& launch, const Environment& environment);

}  // namespace cpprun::ssh
