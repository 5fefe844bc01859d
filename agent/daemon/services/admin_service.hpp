// AdminService: answers the admin queries of tools on this machine: status, stacks, signals to
// workers, leaving the job, and admin commands for the whole job. Queries arrive at its
// AdminSocket.
//
// It relays admin commands to the coordinator without interpreting them, and the replies back. If
// the coordinator demands an HMAC of the admin token, the agent computes it with its own token: the
// admin socket serves only the agent's own user and root, which can read the token from its
// environment anyway.
//
// Thread: the loop's. Owner: the daemon. Calls no callback after its destruction.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/core/agent.hpp"
#include "agent/core/config.hpp"
#include "agent/daemon/services/admin_socket.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "common/endpoint.hpp"
#include "common/loop/background_work.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class AdminService {
 public:
  // The state of the agent that queries read. All must outlive this object.
  struct Node {
    const AgentConfig& config;
    const std::string& name;
    const LogFolder& folder;
    const agent::Agent& core;
    ProcessHost& host;
    Instant begun_at;  // start of this agent
  };
  struct Callbacks {
    std::function<std::optional<Endpoint>()> coordinator;    // nullopt: not connected
    std::function<bool()> hosts_coordinator;                 // a coordinator is in this process
    std::function<bool(const control::AgentMessage&)> send;  // returns false if not connected
    std::function<std::string()> goodput;                    // the event of now, as JSON
    std::function<void(int signal)> leave;                   // ends this agent as this signal would
  };

  AdminService(boost::asio::io_context& loop, Node node, Callbacks callbacks);
  AdminService(const AdminService&) = delete;

  // Starts to listen. After an error the job runs on without admin tools.
  Status open() { return socket_.open(); }

  // Answers the query that waits for this message.
  void on_message(const control::CoordinatorMessage& message) {
    std::visit([this](const auto& m) { on(m); }, message);
  }
  void on_disconnected();

 private:
  admin::NodeView node_view() const;
  std::string signal_workers(const admin::AdminQuery& query);
  std::string leave(const admin::AdminQuery& query);
  // The parameter `rank` selects one global rank; without it all workers of this node. Serves one
  // query at a time, because each halts the workers for moments.
  void collect_stacks(const admin::AdminQuery& query, const AdminSocket::Answer& answer);
  // Parameters: kind (restart, stop, drain or scale), resumable, node, nodes.
  void relay(const admin::AdminQuery& query, const AdminSocket::Answer& answer);
  void on(const control::AdminReply& reply);
  void on(const control::Challenge& challenge);
  template <class Other>
  void on(const Other&) {}

  // A relayed command. Each gets one answer: the coordinator's, or the reason why there is none.
  struct Relayed {
    control::AdminCommand command;
    AdminSocket::Answer answer;
  };

  boost::asio::io_context& loop_;
  const Node node_;
  const Callbacks callbacks_;
  const std::string token_;             // the admin token; empty: none
  std::map<int64_t, Relayed> relayed_;  // by the command's id
  int64_t last_command_ = 0;
  AdminSocket::Answer stacks_answer_;  // of the running query; it stays on the loop's thread
  BackgroundWork background_;
  AdminSocket socket_;
};

}  // namespace cpprun
