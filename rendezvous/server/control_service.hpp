// ControlService: runs the coordinator core on a rendezvous server. Passes the agents' messages to
// the core and carries out its effects: messages, closings, the rounds' stores. Thread: the loop's.
// The owner of the server owns it; it must outlive the run of the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/status.hpp"
#include "rendezvous/server/server.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class ControlService {
 public:
  ControlService(boost::asio::io_context& loop, CoordinatorOptions options);
  ~ControlService();
  ControlService(const ControlService&) = delete;

  // Sets the server's hooks: control sessions, the main port's store, /status, and the jobs' part
  // of /metrics and /events.
  void fill(ServerHooks& hooks);

  // The body of /status of a standalone server.
  std::string status(const ServerStats& server) const;

  // Accepts admin commands over TCP that are authenticated with this token; without this call,
  // none.
  void accept_admin_commands(std::string token, std::function<std::string()> make_nonce);

  // The rounds' stores listen on `address` ("": every interface) of this server. Before the loop
  // runs.
  void attach(Server& server, std::string address);

  // Leads by a leader lease (R18): `write` stores the state in etcd and later, not from inside the
  // call, calls on_persisted(). Until then the service sends nothing. Before the loop runs.
  void when_persisting(std::function<void(const control::PersistedJobState&)> write);
  void on_persisted();
  // As Coordinator::lead_until().
  void lead_until(Instant until);
  bool is_idle() const;

  // Sends and does nothing from now on.
  void close();

  // Calls `then` once no agent is connected or the job is left to the standby; maybe at once.
  // `is_exiting`: as Coordinator::on_host_agent_ended().
  void when_idle(bool is_exiting, std::function<void()> then);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
