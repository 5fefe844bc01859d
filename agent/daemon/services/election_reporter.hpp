// ElectionReporter: reports to the election of the coordinator (R18) whether this agent has a
// leader and whether it is a candidate, after each change and at each heartbeat. Keeps why no
// leader is known. Thread: the loop's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "common/time.hpp"

namespace cpprun {

class ElectionReporter {
 public:
  using Report = std::function<void(bool is_led, bool would_lead)>;

  explicit ElectionReporter(Duration heartbeat) : heartbeat_(heartbeat) {}

  // The coordinator is elected.
  void open(Report report) { report_ = std::move(report); }
  bool is_open() const { return report_ != nullptr; }

  // Requires: is_open().
  void report(Instant now, bool is_led, bool would_lead);
  void on_leader_unknown(const std::string& why) { trouble_ = why; }
  void on_led() { trouble_.clear(); }

  // Why the leader is unknown; "" once there was a leader.
  const std::string& trouble() const { return trouble_; }

 private:
  const Duration heartbeat_;
  Report report_;
  std::optional<std::pair<bool, bool>> reported_;  // the last report
  Instant reported_at_;
  std::string trouble_;
};

}  // namespace cpprun
