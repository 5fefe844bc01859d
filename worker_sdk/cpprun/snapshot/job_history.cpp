#include "cpprun/snapshot/job_history.hpp"

#include <chrono>

#include "cpprun/worker/environment.hpp"

namespace cpprun::snapshot {

JobHistory::JobHistory(int64_t restarts, double now)
    : known_{.rollbacks = restarts, .saved_at = {}}, known_at_(now), classified_(restarts) {}

double JobHistory::saved_at(const std::string& owner, double now) {
  return known_.saved_at.try_emplace(owner, seconds(now)).first->second;
}

double JobHistory::begin_save(const std::string& owner, double now) {
  return known_.saved_at[owner] = seconds(now);
}

void JobHistory::resume(const std::string& owner, double seconds, int64_t restarts, double now) {
  known_.rollbacks += restarts - classified_;
  classified_ = restarts;
  set_seconds(seconds, now);
  known_.saved_at[owner] = seconds;
}

JobHistory::Record JobHistory::record(double now) const {
  Record record = known_;
  record.seconds = seconds(now);
  return record;
}

void JobHistory::keep_state(const Record& record, int64_t restarts, double now) {
  known_.rollbacks = record.rollbacks;
  classified_ = restarts;
  set_seconds(record.seconds, now);
  for (const auto& [owner, seconds] : record.saved_at) known_.saved_at[owner] = seconds;
}

void JobHistory::set_seconds(double seconds, double now) {
  known_.seconds = seconds;
  known_at_ = now;
}

JobHistory& own_job_history() {
  static JobHistory history(own_restarts(), steady_seconds());
  return history;
}

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

int64_t own_restarts() { return worker::environment_or_default().restart_count; }

}  // namespace cpprun::snapshot
