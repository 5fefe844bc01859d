#include "agent/daemon/events/trace_recorder.hpp"

#include <utility>

#include "agent/daemon/services/failure_notice.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"

namespace cpprun {
namespace {

// The wall clock at a moment of the monotonic one, in nanoseconds since 1970.
int64_t wall_at(Instant at) {
  constexpr int64_t kPerMicrosecond = 1000;
  return wall_now().microseconds * kPerMicrosecond - (boot_now() - at).count();
}

}  // namespace

TraceRecorder::TraceRecorder(const AgentConfig& config, std::string node,
                             const bool& hosts_coordinator)
    : config_(config), node_(std::move(node)), hosts_coordinator_(hosts_coordinator) {
  Result<std::optional<TraceConfig>> wanted = trace_config(config.environment);
  if (!wanted) log::warning("no traces are sent: " + wanted.error().text);
  if (!wanted || !*wanted) return;
  parent_ = (*wanted)->parent;
  own_key_ = random_hex();
  exporter_ = std::make_unique<SpanExporter>(std::move(**wanted));
}

bool TraceRecorder::sends_spans() const {
  return exporter_ && sends_for_job(hosts_coordinator_, assignment_);
}

TraceIds TraceRecorder::ids() const {
  const std::string& key = assignment_.job_key;
  return {parent_, key.empty() ? own_key_ : key};
}

void TraceRecorder::begin(Instant at) { begun_at_ = at; }

OtlpSpan TraceRecorder::span(std::string id, Instant begin, Instant end) const {
  OtlpSpan made;
  made.trace_id = ids().trace();
  made.id = std::move(id);
  made.begin_ns = wall_at(begin);
  made.end_ns = made.begin_ns + (end - begin).count();
  return made;
}

void TraceRecorder::send(OtlpSpan span) {
  span.attributes.emplace_back("cpprun.run_id", config_.rendezvous.run_id);
  span.attributes.emplace_back("host.name", node_);
  exporter_->add(otlp_json(span));
}

void TraceRecorder::on_round(const control::RankAssignment& assignment) {
  assignment_ = assignment;
  round_began_at_ = boot_now();
  stop_cause_.clear();
  stop_reason_.clear();
  has_failed_ = false;
}

void TraceRecorder::on_timing(const std::string& cause, const agent::PhaseTimings& phases,
                              bool is_complete) {
  if (!exporter_) return;
  timing_ = Timing{cause, assignment_.round, phases.all(), boot_now() - phases.total()};
  if (is_complete) send_timing();
}

void TraceRecorder::send_timing() {
  const std::optional<Timing> timing = std::exchange(timing_, std::nullopt);
  if (!timing || !sends_spans()) return;
  const std::string what = timing->cause == "start" ? "start" : "recovery";
  const std::string key = what + " " + std::to_string(timing->round.value);
  Instant end = timing->begin;
  for (const agent::Phase& phase : timing->phases) {
    const Instant begin = std::exchange(end, end + phase.took);
    OtlpSpan part = span(ids().span(key + " " + phase.name), begin, end);
    part.name = phase.name;
    part.parent = ids().span(key);
    part.attributes.emplace_back("cpprun.round", timing->round.value);
    send(std::move(part));
  }
  OtlpSpan whole = span(ids().span(key), timing->begin, end);
  whole.name = what;
  whole.parent = ids().job();
  whole.attributes = {{"cpprun.round", timing->round.value}, {"cpprun.cause", timing->cause}};
  send(std::move(whole));
}

void TraceRecorder::on_stop(const std::string& cause, const std::string& why, bool is_failure) {
  stop_cause_ = cause;
  stop_reason_ = why;
  has_failed_ = is_failure;
}

void TraceRecorder::on_round_over() {
  const std::optional<Instant> began = std::exchange(round_began_at_, std::nullopt);
  if (!began || !sends_spans()) return;
  OtlpSpan round = span(ids().round(assignment_.round), *began, boot_now());
  round.name = "round " + std::to_string(assignment_.round.value);
  round.parent = ids().job();
  if (has_failed_) round.error = stop_reason_.empty() ? stop_cause_ : stop_reason_;
  round.attributes = {{"cpprun.round", assignment_.round.value},
                      {"cpprun.restart_count", assignment_.restart_count},
                      {"cpprun.nodes", assignment_.group_size},
                      {"cpprun.world_size", assignment_.world_size}};
  if (!stop_cause_.empty()) round.attributes.emplace_back("cpprun.cause", stop_cause_);
  send(std::move(round));
}

void TraceRecorder::send_job(const agent::Finish& finish, int exit_code) {
  OtlpSpan job = span(ids().job(), begun_at_, boot_now());
  job.name = "job " + config_.rendezvous.run_id;
  job.parent = ids().parent_of_job();
  if (!finish.is_well()) job.error = finish.text.empty() ? "the job has failed" : finish.text;
  job.attributes = {{"cpprun.exit_code", int64_t{exit_code}},
                    {"cpprun.restarts_used", finish.restarts_used},
                    {"cpprun.rounds", assignment_.round.value},
                    {"cpprun.program", config_.workers.title}};
  send(std::move(job));
}

void TraceRecorder::finished(const agent::Finish& finish, int exit_code, bool job_continues) {
  if (!exporter_) return;
  on_round_over();
  // This node leaves; the job continues, or another agent knows of its end.
  const bool leaves =
      job_continues || (finish.signal != 0 && !finish.job_result && assignment_.group_size > 1);
  if (sends_spans() && !leaves) {
    send_timing();
    send_job(finish, exit_code);
  }
  exporter_->finish();
}

}  // namespace cpprun
