// AdminSocket: an abstract unix socket for tools on this machine. Each connection carries one
// request and one reply (rendezvous/protocol/admin/admin_protocol.hpp).
//
// Serves processes of the agent's own user and root; closes all other connections. Handlers for the
// verbs are registered with on(). Causes no wake-ups while it is idle. Thread: the loop's. Owner:
// the daemon.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class AdminSocket {
 public:
  // Takes the body of the reply: JSON, at most limits::kAdminReplyBytes. The handler calls it once,
  // on the loop's thread, now or later. After limits::kAdminReplyTimeout the connection is closed
  // and the call has no effect.
  using Answer = std::function<void(std::string body)>;
  using Verb = std::function<void(const admin::AdminQuery& query, Answer answer)>;

  explicit AdminSocket(boost::asio::io_context& loop);
  ~AdminSocket();
  AdminSocket(const AdminSocket&) = delete;

  // Registers the handler of a verb; replaces an earlier one.
  void on(const std::string& verb, Verb answerer);

  // Starts to listen. After an error the job runs on without admin tools.
  Status open();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
