// ControlService: the coordinator on a rendezvous server. Decodes what agents say, lets the core
// think, carries its effects out: messages, closings, the rounds' stores.
//
// Thread: the loop's. Owner: whoever owns the server; it must outlive the server's loop run.
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

  // Gives the server its control sessions, the main port's store, /status, and what /metrics and
  // /events say of jobs.
  void fill(ServerHooks& hooks);

  // What /status says where a server stands by itself.
  std::string status(const ServerStats& server) const;

  // Admin commands over TCP are taken from who knows this token; without this call, from nobody.
  void accept_admin_commands(std::string token, std::function<std::string()> make_nonce);

  // The rounds' stores listen on `address` ("" is every interface) of this server. Before the loop
  // runs.
  void attach(Server& server, std::string address);

  // By a leader lease (R18): `write` is to see to it that the facts stand in etcd, and to call
  // on_persisted() then, later; until then nothing goes out. Before the loop runs.
  void when_persisting(std::function<void(const control::PersistedJobState&)> write);
  void on_persisted();
  // As the coordinator's.
  void lead_until(Instant until);
  bool is_idle() const;

  // Nothing is said or done any more, whatever happens to the connections.
  void close();

  // Calls `then` once as soon as no agent is connected, or a standby leads the job when we have
  // gone; maybe at once.
  void when_idle(std::function<void()> then);
  size_t session_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
