// EventRecorder: writes the events of a run to events.jsonl (docs/reference/events.md), from the
// coordinator's messages, the workers' events and stop requests that the daemon passes to it. It
// also measures the phases of the start and of each recovery, and prints them with --timing. No
// error in it stops the agent. Thread: the loop's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/core/phase_timings.hpp"
#include "agent/core/startup_progress.hpp"
#include "agent/daemon/events/event_log.hpp"
#include "agent/daemon/events/torchelastic_events.hpp"
#include "agent/daemon/events/trace_recorder.hpp"
#include "common/failure/failure_summary.hpp"
#include "common/goodput/goodput_account.hpp"
#include "common/heartbeat.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class EventRecorder {
 public:
  // Writes events.jsonl into `run_folder`, unless that is empty. With --event-log-handler=console
  // it also prints torchrun's records on stderr. `hosts_coordinator`: as of now, this process does;
  // it then sends the job's spans. The references must outlive this object.
  EventRecorder(boost::asio::io_context& loop, const AgentConfig& config, std::string node,
                const std::string& run_folder, IoThread& io, const bool& hosts_coordinator);

  // The launcher's measurements of its own start. Before run_started().
  void set_start_times(const StartTimes& times) { start_times_ = times; }
  void run_started();
  // To be called before the core gets the message.
  void on_message(const control::CoordinatorMessage& message);
  void on_signal(int signal);

  void starting();   // the round's files are about to be made, and then its workers spawned
  void preloaded();  // the preload process is ready, or known not to be
  void spawning();   // its workers are about to be spawned
  // Without a reason it was forked.
  void worker_started(LocalRank local_rank, Rank rank, int pid, std::optional<SpawnReason> reason);
  // A worker of the round before is one of this round; -1: it had completed no step.
  void worker_kept(LocalRank local_rank, Rank rank, int pid, int64_t step);
  // All workers here were started. `starts`: in all rounds.
  void round_started(const WorkerStarts& starts);
  void start_failed();  // one could not be; the others are gone
  // A worker's milestones before its first step: agent/core/startup_progress.hpp.
  void worker_ready(LocalRank local_rank);
  // `step`: of its newest heartbeat; -1: it has sent none.
  void on_milestone(LocalRank local_rank, WorkerMilestone milestone, int64_t step);
  void snapshot_complete(LocalRank local_rank, int64_t step, const std::string& path);
  void worker_exited(const WorkerExit& end);
  void hangs_since(Instant since) { goodput_.hang(since); }
  void first_failure(const std::string& text);
  // The agent stops the workers, for any reason. `regroups`: those that can are to stay.
  void stopping(bool regroups = false);
  // All workers are gone, or wait for the next round.
  void workers_gone(bool are_some_held = false);

  // --node-check has ended; `why`: empty: it has passed.
  void node_checked(const std::string& why, Duration took);
  void warning(const std::string& text);
  // Also writes failure_summary.json, and waits for that, at most limits::kIoEndTimeout. `text`:
  // the paragraph on the console.
  void failure_summary(const Failure& failure, const std::string& text);
  // The same for a job that ended because no node replaced a lost one before the join timeout.
  void lost_node(const agent::Finish& finish);
  // Waits for the job's last spans, at most limits::kTraceEndWait. `job_continues`: on other nodes.
  void finished(const agent::Finish& finish, int exit_code, bool job_continues);
  void close() { log_.close(); }  // later events are dropped; may wait: event_log.hpp

  // The failure summary of the job as a JSON object; "": it has none.
  const std::string& summary() const { return summary_; }
  // How this node has used its time. The caller adds the heartbeats.
  GoodputAccount& goodput() { return goodput_; }
  // Whether this node had the first workers in its newest round, and no later round runs without
  // it: it speaks for the job.
  bool is_first_node() const { return group_rank_ == 0 && !is_left_out_; }
  // Whether this node writes what the job leaves once. Before the first round the coordinator's
  // does.
  bool speaks_for_job(bool has_coordinator) const {
    return round_ == RoundNumber() ? has_coordinator : is_first_node();
  }
  // The coordinator takes the node's report of its time for /metrics.
  bool reports_time() const { return is_first_node() && takes_time_spent_; }
  // The `goodput` event of now, a JSON object without a newline.
  std::string goodput_event() const;

 private:
  struct Stamp {
    WallTime wall;
    Instant at;  // monotonic; comparable within one node
  };

  void on(const control::Registered& message);
  void on(const control::Wait& message);
  void on(const control::RankAssignment& message);
  void on(const control::Stop& message);
  void on(const control::SlowRank& message);
  void on(const control::JobResult& message);
  void on(const control::ShutdownRequest& message) { begin_stop("admin", message.why); }
  template <class Other>
  void on(const Other&) {}

  void set_excluded(bool is_excluded, const std::string& why);
  static Stamp now();
  // One line of events.jsonl with its newline; docs/reference/events.md describes every field.
  std::string line(const Stamp& stamp, const char* event,
                   const nlohmann::ordered_json& fields) const;
  void write(const char* event, const nlohmann::ordered_json& fields);
  nlohmann::ordered_json round_fields(const WorkerStarts& starts) const;
  void write_started() { log_.write(std::exchange(started_, "")); }
  void begin_stop(const std::string& cause, const std::string& why);
  void take_start_times();
  void end_timing();
  nlohmann::ordered_json goodput_fields(Instant at) const;
  void keep_failure_summary(const nlohmann::ordered_json& fields);
  // `until`: the milestone reached, "spawn" or "first_step".
  void write_timing(const char* until);

  const AgentConfig& config_;
  const std::string node_;
  const std::string run_folder_;
  IoThread& io_;
  EventLog log_;
  TorchelasticEvents torch_;
  TraceRecorder trace_;
  RoundNumber round_;
  // worker_started lines of this round, written together, before any later event of its workers.
  std::string started_;
  bool has_spawned_ = false;  // a worker of this round
  size_t workers_ = 0;        // started in this round
  int64_t forked_ = 0;        // of all rounds
  int64_t kept_ = 0;          // workers of this round that stay from the one before
  bool regroups_ = false;     // workers were asked to stay for the next round
  size_t ready_ = 0;          // workers of this round that are ready
  Instant spawned_at_;        // of the last worker
  bool is_fetching_ = false;  // the agent fetches a snapshot before it starts the workers
  StartTimes start_times_;
  agent::PhaseTimings phases_;
  agent::StartupProgress startup_progress_;
  GoodputAccount goodput_;
  std::string summary_;
  bool is_left_out_ = false;          // a later round than the last one with this node runs
  bool takes_time_spent_ = false;     // the coordinator
  int64_t group_rank_ = -1;           // of this node in round_; -1: it was in none
  std::string cause_ = "start";       // why phases_ began: "start", or why the last round ended
  std::optional<Instant> failed_at_;  // the first failure of this round on this node
  bool is_running_ = false;           // there are workers
  bool is_stopping_ = false;          // the round_stopping event is written
  std::optional<Stamp> stop_reported_at_;
  bool is_excluded_ = false;    // this host is
  std::string waiting_reason_;  // reason of the last `waiting` event; repeats are skipped
  int64_t newest_snapshot_ = 0;
};

}  // namespace cpprun
