// TraceRecorder: the spans of a job: the job, its rounds, its start and its recoveries with their
// phases. It sends nothing unless the environment names a collector (trace_config.hpp).
//
// All agents make the same ids; the agent beside the coordinator sends the spans that end while it
// is that, so a standby that takes over sends the later ones, and none is sent twice. A span that
// had ended but was not sent when its agent died is lost. Thread: the loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"
#include "agent/core/phase_timings.hpp"
#include "agent/daemon/events/span_exporter.hpp"
#include "common/traces/otlp_json.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class TraceRecorder {
 public:
  // `hosts_coordinator`: as of now, this process does. Both arguments outlive this object.
  TraceRecorder(const AgentConfig& config, std::string node, const bool& hosts_coordinator);

  void begin(Instant at);  // the launcher was started
  void on_round(const control::RankAssignment& assignment);
  // The phases of a start or a recovery so far; `cause` as in the event `timing`. `is_complete`: it
  // has no further ones.
  void on_timing(const std::string& cause, const agent::PhaseTimings& phases, bool is_complete);
  // The start or recovery is over, since the workers are being stopped.
  void on_stop_begins() { send_timing(); }
  void on_stop(const std::string& cause, const std::string& why, bool is_failure);
  void on_round_over();
  // Waits for the last spans. `job_continues`: on other nodes.
  void finished(const agent::Finish& finish, int exit_code, bool job_continues);

 private:
  struct Timing {
    std::string cause;
    RoundNumber round;
    std::vector<agent::Phase> phases;
    Instant begin;
  };

  bool sends_spans() const;
  TraceIds ids() const;
  // A span of the job's trace; the caller adds name, parent and attributes.
  OtlpSpan span(std::string id, Instant begin, Instant end) const;
  void send(OtlpSpan span);
  void send_timing();
  void send_job(const agent::Finish& finish, int exit_code);

  const AgentConfig& config_;
  const std::string node_;
  const bool& hosts_coordinator_;
  std::unique_ptr<SpanExporter> exporter_;  // null: no spans are wanted
  std::optional<TraceParent> parent_;
  std::string own_key_;  // of a job without a round
  Instant begun_at_;
  control::RankAssignment assignment_;  // of the newest round; round 0: none
  std::optional<Instant> round_began_at_;
  std::string stop_cause_;
  std::string stop_reason_;
  bool has_failed_ = false;       // the newest round
  std::optional<Timing> timing_;  // not sent yet
};

}  // namespace cpprun
