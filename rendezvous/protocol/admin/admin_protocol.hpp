// What operators' tools and an agent say to each other over the agent's unix socket: a question, as
// a flat JSON object of texts, and its answer, JSON too. Both sides use this; docs/protocol.md,
// "Admin socket".
//
// On the wire each is one frame: length (u32, little-endian, without itself), then the JSON. A
// connection carries one question and one answer. Pure: no sockets here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::admin {

// Names of the abstract unix sockets on which agents listen begin so; then comes the agent's pid, a
// dot, and 16 random hex digits.
inline constexpr std::string_view kSocketPrefix = "cpprun/ctl/";

struct AdminQuery {
  std::string verb;
  std::map<std::string, std::string> parameters;  // by name; numbers are written in decimal

  // "" if there is no such word.
  const std::string& parameter(const std::string& name) const;
  // Nothing if there is no such word or it is no number.
  std::optional<int64_t> number(const std::string& name) const;
};

// Words longer than limits::kAdminParameterBytes are an error of whoever asks.
std::string encode(const AdminQuery& query);
// Error: Protocol, for anything but a flat object of texts that has a verb.
Result<AdminQuery> decode_query(std::string_view body);

// Answers that say no more than how it went.
std::string done(const std::string& text);
std::string refusal(const std::string& why);
// Of an answer that is a refusal: why.
std::optional<std::string> refusal_reason(std::string_view body);

// The frame around a body. Requires: at most limits::kAdminReplyBytes.
std::string framed(std::string_view body);
// The length that these four bytes say; nothing if it is 0 or above `most`.
std::optional<size_t> frame_length(std::string_view four, size_t most);

// How far a worker has come, as it says itself; nothing of this is checked.
struct WorkerProgress {
  int64_t step = 0;
  int64_t collectives = 0;
  int64_t phase = 0;      // worker::Phase
  Duration age{};         // of its last heartbeat
  Duration step_takes{};  // zero: not known yet
};
struct WorkerView {
  int64_t rank = 0;
  int64_t local_rank = 0;
  int64_t pid = 0;
  std::optional<WorkerProgress> progress{};  // nothing: it says nothing (no SDK, no helper)
  std::optional<int64_t> memory_bytes{};  // resident, of the worker itself; nothing: it has ended
  std::string stdout_file{};              // where its output is kept; empty: nowhere
  std::string stderr_file{};
};
// What an agent tells of itself: the answer to `status`.
struct NodeView {
  std::string run_id;
  std::string node;   // its name
  std::string title;  // the script or program
  int64_t pid = 0;    // of the agent
  std::string state;  // joining, starting, running, stopping, stopped, done, leaving, draining ...
  std::string coordinator;  // host:port, as this agent reaches it; empty while it does not
  bool is_host = false;     // the coordinator is in this process
  int64_t round = 0;
  int64_t group_rank = 0;
  int64_t group_size = 0;
  int64_t world_size = 0;
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  Duration up{};  // since the agent's start
  std::string run_folder;
  std::optional<int64_t> snapshot_step{};  // the newest one here
  std::vector<WorkerView> workers{};
};
std::string encode(const NodeView& view);

// What a worker is doing: lines for people. The answer to `stacks` has one per worker asked for.
struct WorkerStack {
  int64_t rank = 0;
  int64_t pid = 0;
  std::string text;
};
std::string encode(const std::vector<WorkerStack>& stacks);

}  // namespace cpprun::admin
