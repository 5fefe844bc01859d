// Replies of agents and coordinators as plain data. Decoding is pure and accepts any input: a
// missing field or one of another type counts as unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/goodput/goodput.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"

namespace cpprun::ctl {

struct FinishedJob;

// A node of a job, from the coordinator's view.
struct JobNode {
  std::string name;
  std::string state;
  std::string address;
  int64_t nproc = 0;
  std::optional<int64_t> group_rank{};
  std::string node_check{};  // "passed", "pending", "failed"
  std::string link_check{};  // "passed", "failed"
};
// A host with faults, or an excluded one.
struct JobHost {
  std::string host;
  int64_t failures = 0;
  int64_t failed_starts = 0;
  int64_t hangs = 0;
  int64_t failed_checks = 0;
  int64_t losses = 0;
  int64_t slow = 0;
  std::string excluded_by;  // "policy", "operator"; empty: it is not
  std::string reason;
};
// A rank that computes more slowly than the others.
struct JobSlowRank {
  int64_t rank = 0;
  std::string node;
  int64_t compute_us = 0;
  int64_t median_us = 0;
};
// A job from the coordinator's view: one of `jobs` in /status (docs/protocol.md, "HTTP").
struct JobStatus {
  std::string state;  // in the words of ShownState
  std::string why_no_round;
  int64_t round = 0;
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  int64_t hang_restarts_used = 0;
  int64_t max_hangs = 0;
  int64_t node_losses_used = 0;
  std::optional<int64_t> max_node_losses{};  // nullopt: any number
  int64_t admin_restarts = 0;
  std::optional<int64_t> wanted_nodes{};  // set by `cpprunctl scale`
  std::optional<int64_t> snapshot_step{};
  int64_t exclude_after = 0;  // --exclude-after
  std::vector<JobHost> hosts{};
  std::vector<JobSlowRank> slow_ranks{};
  std::optional<Goodput> goodput{};  // no failures, restarts; nullopt: not known yet
  std::vector<JobNode> nodes{};      // members of the round first, in rank order
};

// In the order of the reply.
std::vector<admin::WorkerStack> decode_stacks(const std::string& body);
// {"stacks": [{"node", "rank", "pid", "text"}, ...]} from pairs of node and stack.
std::string stacks_json(const std::vector<std::pair<std::string, admin::WorkerStack>>& stacks);
Result<admin::NodeView> decode_node_view(const std::string& body);
// By run id.
Result<std::map<std::string, JobStatus>> decode_status(const std::string& body);

// For --json: {"agents": [...], "status": ...} from unparsed bodies; an empty one is null.
std::string joined_json(const std::vector<std::string>& agents, const std::string& status);
// For ps -a --json: the same agents, and "finished": the jobs that have ended.
std::string all_jobs_json(const std::vector<std::string>& agents,
                          const std::vector<FinishedJob>& finished);
// {"pid": ..., "rank": ..., "node": ...}
std::string pid_json(int64_t pid, int64_t rank, const std::string& node);
// The text of {"done": "..."}; "" for anything else.
std::string done_text(const std::string& body);

}  // namespace cpprun::ctl
