#include "cpprun/worker/snapshot_notice.hpp"

#include <filesystem>
#include <system_error>

#include "cpprun/worker/faults.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::worker {

CommitPermission request_commit(int64_t step) {
  fault_point_at_save(step);
  const AgentSocket& agent = own_agent();
  if (!agent.has_snapshots()) return {};
  const auto answer = agent.request(channel::CommitRequest{.step = step});
  const auto* permission = answer ? std::get_if<channel::Permission>(&answer->message) : nullptr;
  if (permission == nullptr) return {false, "the agent does not answer"};
  return {permission->is_permitted, permission->why};
}

void report_snapshot(int64_t step, const std::string& path) {
  const AgentSocket& agent = own_agent();
  if (!agent.has_snapshots()) return;
  agent.page()->snapshot_written.store(step, std::memory_order_release);
  std::error_code error;
  const std::filesystem::path absolute_path = std::filesystem::absolute(path, error);
  if (!error) agent.send(channel::Snapshot{step, absolute_path.string()});
}

void report_resumed(int64_t step, const std::string& path, bool fell_back) {
  const AgentSocket& agent = own_agent();
  if (agent.has_resumed()) agent.send(channel::Resumed{fell_back, step, path});
}

std::optional<int64_t> newest_snapshot() {
  const AgentSocket& agent = own_agent();
  if (!agent.has_snapshots()) return std::nullopt;
  const int64_t step = agent.page()->snapshot_newest.load(std::memory_order_acquire);
  if (step <= 0) return std::nullopt;
  return step;
}

void enable_graceful_stop() {
  const AgentSocket& agent = own_agent();
  if (agent.has_snapshots()) agent.page()->can_save.store(1, std::memory_order_release);
}

}  // namespace cpprun::worker
