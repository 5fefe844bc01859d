// LogRelay: passes requests for log files from tools to agents, and the replies back. It keeps only
// what is on its way: a tool keeps its own positions and asks again. A tool proves once that it
// knows the job's token. No I/O and no clock: the control service calls it. Thread: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class LogRelay {
 public:
  using Send = std::function<void(SessionId, control::CoordinatorMessage)>;

  // `core` outlives the relay.
  LogRelay(const Coordinator& core, Send send) : core_(core), send_(std::move(send)) {}

  // Whether the tool has proved that it may read the files of a job.
  bool is_admitted(SessionId tool) const { return tools_.contains(tool); }
  // It has. Error: it may not read: there are too many, or no such job.
  Status admit(SessionId tool, const std::string& run_id);
  // Requires: is_admitted().
  void on_request(SessionId tool, control::LogRequest request);
  void on_reply(SessionId agent, control::LogReply reply);
  // Of a tool or of an agent.
  void on_closed(SessionId session);

 private:
  struct Tool {
    int64_t number = 0;
    std::string run_id;
    size_t requests = 0;  // on their way
  };
  // A request that an agent has not answered yet.
  struct Pending {
    SessionId tool;
    SessionId agent;
    int64_t id = 0;  // the tool's
  };

  const Job* job_of(const Tool& tool) const;
  control::LogReply list_of(const Tool& tool, const control::LogRequest& request) const;
  void answer(const Pending& pending, control::LogReply reply);

  const Coordinator& core_;
  const Send send_;
  std::map<SessionId, Tool> tools_;
  std::map<int64_t, Pending> pending_;  // by the id that the agent has got
  int64_t last_tool_ = 0;
  int64_t last_id_ = 0;
};

}  // namespace cpprun
