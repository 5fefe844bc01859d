#include "agent/core/join_texts.hpp"

#include <cstdint>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::agent {

std::string waiting_text(bool is_connected, const std::string& last_wait) {
  if (!is_connected) return "while waiting for the coordinator; no worker was started";
  const std::string what = last_wait.empty() ? "for the first round" : "(" + last_wait + ")";
  return "while waiting " + what + "; no worker was started";
}

std::string refused_text(const control::Refused& refused, const control::Hello& hello,
                         const std::string& endpoint) {
  if (!refused.occupant) return "the coordinator refused this agent: " + refused.why;
  const control::Occupant& by = *refused.occupant;
  const std::string other = text::one_line(by.host, limits::kNameBytes);
  const std::string pid = by.pid > 0 ? "pid " + std::to_string(by.pid) : "another agent";
  const std::string where = other == hello.node.name ? "" : " on " + other;
  return "job '" + hello.run_id + "' already runs at " + endpoint + " (" + pid + where + ")" +
         "; give --rdzv-id=NAME to run another job there";
}

std::string fell_back_text(int64_t chosen, int64_t step) {
  const std::string instead =
      step < 0 ? "training begins anew" : "training goes on from step " + std::to_string(step);
  return "the snapshot of step " + std::to_string(chosen) + " could not be used, " + instead;
}

std::string join_timeout_text(const JoinTimeout& why) {
  std::string text = "timed out after " +
                     std::to_string(static_cast<int64_t>(to_seconds(why.timeout))) +
                     " s without a round";
  if (!why.is_connected) text += ": no connection to the coordinator";
  if (why.is_connected && !why.last_wait.empty()) text += ": " + why.last_wait;
  if (!why.lost.empty()) {
    text += "; the last round ended because " + why.lost + " [class=lost_node]";
  }
  if (why.has_finished) text += "; the workers here ended well, the job's outcome is unknown";
  return text + " (--rdzv-conf=join_timeout=SECONDS waits longer)";
}

}  // namespace cpprun::agent
