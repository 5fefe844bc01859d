// AdminCommandRelay: forwards admin commands for the whole job from tools on this machine to the
// coordinator, and the replies back. It does not interpret the commands. If the coordinator demands
// an HMAC of the admin token, the agent computes it with its own token: the admin socket serves
// only the agent's own user and root, which can read the token from its environment anyway.
//
// Thread: the loop's. Owner: the daemon. Each request gets one reply: the coordinator's, or the
// reason why there is none.
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
  // Returns false if there is no connection to the coordinator.
  using Send = std::function<bool(const control::AgentMessage&)>;

  // `token`: the admin token; empty if the agent has none.
  AdminCommandRelay(Send send, std::string run_id, std::string token)
      : send_(std::move(send)), run_id_(std::move(run_id)), token_(std::move(token)) {}

  // Parameters of `query`: kind (restart, stop, drain or scale), resumable, node, nodes.
  void ask(const admin::AdminQuery& query, const Reply& reply);
  void on_challenge(const control::Challenge& challenge);
  void on_answer(const control::AdminReply& answer);
  void on_disconnected();

 private:
  struct Waiting {
    control::AdminCommand command;
    Reply reply;
  };

  Send send_;
  const std::string run_id_;
  const std::string token_;
  std::map<int64_t, Waiting> waiting_;  // by the command's id
  int64_t last_id_ = 0;
};

}  // namespace cpprun
