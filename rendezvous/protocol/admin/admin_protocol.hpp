// The admin protocol: what cpprunctl and an agent exchange over the agent's unix socket. A query is
// a flat JSON object of strings; the reply is JSON too. docs/protocol.md, "Admin socket".
//
// On the wire each is one frame (frame.hpp); a reply has at most limits::kAdminReplyBytes. A
// connection carries one query and one reply. Pure: no sockets here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/heartbeat.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::admin {

// Prefix of the abstract unix sockets on which agents listen. The agent's pid, a dot and 16 random
// hex digits follow.
inline constexpr std::string_view kSocketPrefix = "cpprun/ctl/";

struct AdminQuery {
  std::string verb;
  std::map<std::string, std::string> parameters;  // by name; numbers are written in decimal

  // "" if there is no such parameter.
  const std::string& parameter(const std::string& name) const;
  // Empty if there is no such parameter or it is not a number.
  std::optional<int64_t> number(const std::string& name) const;
};

// Requires: parameters of at most limits::kAdminParameterBytes; agents reject longer ones.
std::string encode(const AdminQuery& query);
// Error: Protocol, for anything but a flat object of texts that has a verb.
Result<AdminQuery> decode_query(std::string_view body);

// Replies that carry only the outcome.
std::string done(const std::string& text);
std::string refusal(const std::string& why);
// The reason if the reply is a refusal; otherwise empty.
std::optional<std::string> refusal_reason(std::string_view body);

struct WorkerView {
  int64_t rank = 0;
  int64_t local_rank = 0;
  int64_t pid = 0;
  std::optional<Heartbeat> progress{};  // empty: the worker reports none (no SDK, no helper)
  // Resident, of the worker process alone; empty: it has ended.
  std::optional<int64_t> memory_bytes{};
  std::string stdout_file{};  // log file; empty: none
  std::string stderr_file{};
};
// The reply to `status`: an agent's view of its node.
struct NodeView {
  std::string run_id;
  std::string node;   // its name
  std::string title;  // the script or program
  int64_t pid = 0;    // of the agent
  std::string state;  // joining, starting, running, stopping, stopped, done, leaving, draining ...
  std::string coordinator;  // host:port as this agent reaches it; empty while disconnected
  bool is_host = false;     // the coordinator is in this process
  int64_t round = 0;
  int64_t group_rank = 0;
  int64_t group_size = 0;
  int64_t min_nodes = 0;  // of --nnodes
  int64_t world_size = 0;
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  Duration up{};  // since the agent's start
  std::string run_folder;
  std::optional<int64_t> snapshot_step{};  // the newest one on this node
  std::vector<WorkerView> workers{};
};
std::string encode(const NodeView& view);

// One worker's stack as text for people. The reply to `stacks` has one per requested worker.
struct WorkerStack {
  int64_t rank = 0;
  int64_t pid = 0;
  std::string text;
};
std::string encode(const std::vector<WorkerStack>& stacks);

}  // namespace cpprun::admin
