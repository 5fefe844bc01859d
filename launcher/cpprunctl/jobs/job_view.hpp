// What cpprunctl knows of jobs: what agents and coordinators said, as plain data. Decoding is pure
// and takes anything: what is missing or of another type counts as unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"

namespace cpprun::ctl {

// A node of a job as its coordinator sees it.
struct JobNode {
  std::string name;
  std::string state;
  std::string address;
  int64_t nproc = 0;
  std::optional<int64_t> group_rank{};
};
// A job as its coordinator sees it: one of `jobs` in /status (docs/protocol.md, "HTTP").
struct JobStatus {
  std::string phase;
  std::string why_no_round;
  int64_t round = 0;
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  int64_t admin_restarts = 0;
  std::optional<int64_t> wanted_nodes{};  // by an operator
  std::optional<int64_t> snapshot_step{};
  std::vector<JobNode> nodes{};  // members of the round first, in the order of their ranks
};

// In the order of the answer.
std::vector<admin::WorkerStack> decode_stacks(const std::string& body);
// {"stacks": [{"node", "rank", "pid", "text"}, ...]} of stacks and their nodes.
std::string stacks_json(const std::vector<std::pair<std::string, admin::WorkerStack>>& stacks);
Result<admin::NodeView> decode_node_view(const std::string& body);
// By run id.
Result<std::map<std::string, JobStatus>> decode_status(const std::string& body);

// For --json: {"agents": [...], "status": ...} of the bodies as they came; an empty one is null.
std::string joined_json(const std::vector<std::string>& agents, const std::string& status);
// {"pid": ..., "rank": ..., "node": ...}
std::string pid_json(int64_t pid, int64_t rank, const std::string& node);
// The text of {"done": "..."}; "" if it is something else.
std::string done_text(const std::string& body);

}  // namespace cpprun::ctl
