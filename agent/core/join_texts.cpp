#include "agent/core/join_texts.hpp"

#include <cstdint>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::agent {

std::string waiting_text(bool is_connected, const std::string& last_wait) {
  if (!is_connected) return "while waiting for the coordinator; no worker was started";
  const std::string what = last_wait.empty() ? "for the first round" : "(" + last_wait + ")";
  return "while waiting " + what + "; no worker was started";
}

LogEvent wait_event(const control::Wait& wait, const std::string& last_why) {
  const bool is_other = wait.why != last_why;
  const bool is_delayed = wait.delay > Duration{} && is_other;
  const bool is_news = (wait.is_spare || wait.is_excluded) && is_other;
  const auto level = is_news                          ? LogEvent::Level::Warning
                     : wait.is_reminder || is_delayed ? LogEvent::Level::Status
                                                      : LogEvent::Level::Info;
  return LogEvent{level, "waiting: " + wait.why};
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
      step < 0 ? "training begins anew" : "training continues from step " + std::to_string(step);
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
  text += " (--rdzv-conf=join_timeout=SECONDS waits longer)";
  if (!why.is_connected || why.missing_nodes == 0) return text;
  return text +
         "\nhint: start the same command on the other nodes, and check --rdzv-endpoint and "
         "--rdzv-id there; static jobs: --master-addr, --master-port, and a --node-rank for each";
}

std::string wrong_ranks_text(const control::RankAssignment& assignment, int64_t nproc) {
  constexpr int64_t kWorkers = limits::kNodesPerJob * limits::kWorkersPerNode;
  const auto is_part = [nproc](int64_t first, int64_t size) {
    return size >= nproc && size <= kWorkers && first >= 0 && first <= size - nproc;
  };
  const bool is_group = assignment.group_size >= 1 &&
                        assignment.group_size <= limits::kNodesPerJob &&
                        assignment.group_rank >= 0 && assignment.group_rank < assignment.group_size;
  const bool is_right = is_group && is_part(assignment.base_rank, assignment.world_size) &&
                        is_part(assignment.base_role_rank, assignment.role_world_size) &&
                        assignment.restart_count >= 0 && is_port(assignment.master_port) &&
                        is_port(assignment.store_port);
  if (is_right) return "";
  const auto of = [](int64_t rank, int64_t size) {
    return std::to_string(rank) + " of " + std::to_string(size);
  };
  return "the coordinator sent ranks or ports that cannot be right (node " +
         of(assignment.group_rank, assignment.group_size) + ", first worker " +
         of(assignment.base_rank, assignment.world_size) + ", " + std::to_string(nproc) +
         " workers here, MASTER_PORT " + std::to_string(assignment.master_port) +
         "); use the same cpprun on all nodes, and check what listens at the job's endpoint";
}

}  // namespace cpprun::agent
