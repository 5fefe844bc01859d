// AdminService: answers the admin queries of tools on this machine: status, stacks, signals to
// workers, leaving the job, and admin commands for the whole job, which it relays to the
// coordinator. Queries arrive at its AdminSocket.
//
// Thread: the loop's. Owner: the daemon. Calls no callback after its destruction.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "agent/core/agent.hpp"
#include "agent/core/config.hpp"
#include "agent/daemon/services/admin_command_relay.hpp"
#include "agent/daemon/services/admin_socket.hpp"
#include "agent/daemon/services/stack_dump_service.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "common/endpoint.hpp"
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
    const std::string& host_name;
    const LogFolder& folder;
    const agent::Agent& core;
    ProcessHost& host;
    Instant begun_at;  // start of this agent
  };
  struct Callbacks {
    std::function<std::optional<Endpoint>()> coordinator;    // nullopt: not connected
    std::function<bool()> hosts_coordinator;                 // a coordinator is in this process
    std::function<bool(const control::AgentMessage&)> send;  // returns false if not connected
    std::function<void(int signal)> leave;                   // ends this agent as this signal would
  };

  AdminService(boost::asio::io_context& loop, Node node, Callbacks callbacks);
  AdminService(const AdminService&) = delete;

  // Starts to listen. After an error the job runs on without admin tools.
  Status open() { return socket_.open(); }

  // Answers the query that waits for this message.
  void on_message(const control::CoordinatorMessage& message);
  void on_disconnected() { commands_.on_disconnected(); }

 private:
  admin::NodeView node_view() const;
  std::string signal_workers(const admin::AdminQuery& query);
  std::string leave(const admin::AdminQuery& query);

  boost::asio::io_context& loop_;
  const Node node_;
  const Callbacks callbacks_;
  AdminCommandRelay commands_;
  StackDumpService stacks_;
  AdminSocket socket_;
};

}  // namespace cpprun
