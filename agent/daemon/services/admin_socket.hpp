// AdminSocket: where operators' tools on this machine reach an agent. An abstract unix socket;
// one question, one answer, end of the connection (rendezvous/protocol/admin/admin_protocol.hpp).
//
// Only for processes of the agent's own user, and root: everybody else is hung up on. Knows no verb
// itself: whoever can answer one says so with on(). Costs nothing while nobody asks. Thread: the
// loop's. Owner: the agent's daemon.
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
  // Takes the body of the answer: JSON, at most limits::kAdminReplyBytes. Call it once, on the
  // loop's thread, now or later; who waits longer than limits::kAdminReplyTimeout is gone by then,
  // and calling it then does nothing.
  using Answer = std::function<void(std::string body)>;
  using Verb = std::function<void(const admin::AdminQuery& query, Answer answer)>;

  explicit AdminSocket(boost::asio::io_context& loop);
  ~AdminSocket();
  AdminSocket(const AdminSocket&) = delete;

  // What is asked with this verb goes there; the newest counts.
  void on(const std::string& verb, Verb answerer);

  // Listens from now on. An error costs the job nothing but its operators' tools.
  Status open();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
