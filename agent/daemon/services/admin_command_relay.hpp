// AdminCommandRelay: admin commands for the whole job that operators' tools give to this agent, on
// their way to the coordinator and back. What an admin command means is the coordinator's business.
// Where the coordinator asks for a proof of the admin token, the agent makes it with its own: its
// socket serves the agent's own user and root only, and they can read the token from its
// environment anyway.
//
// Thread: the loop's. Owner: the daemon. Each question is answered once: by the coordinator, or
// with what kept it from answering.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "rendezvous/protocol/admin/admin_protocol.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class AdminCommandRelay {
 public:
  using Reply = std::function<void(std::string body)>;
  // False: there is no connection to the coordinator.
  using Send = std::function<bool(const control::AgentMessage&)>;

  // An empty `token`: this agent knows none.
  AdminCommandRelay(Send send, std::string run_id, std::string token)
      : send_(std::move(send)), run_id_(std::move(run_id)), token_(std::move(token)) {}

  // `query` says the kind: restart, stop (resumable), drain (node), scale (nodes).
  void ask(const admin::AdminQuery& query, const Reply& reply);
  void on_challenge(const control::Challenge& challenge);
  void on_answer(const control::AdminReply& answer);
  void on_disconnected();

 private:
  struct Waiting {
    control::AdminCommand order;
    Reply reply;
  };

  Send send_;
  const std::string run_id_;
  const std::string token_;
  std::map<int64_t, Waiting> waiting_;  // by the order's number
  int64_t newest_ = 0;
};

}  // namespace cpprun
