// AdminSocket: an abstract unix socket for tools on this machine. Each connection carries one
// request and one reply (rendezvous/protocol/admin/admin_protocol.hpp).
//
// Serves processes of the agent's own user and root; closes all other connections. Handlers for the
// verbs are registered with on(). Causes no wake-ups while it is idle. Thread: the loop's. Owner:
// the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/lifetime.hpp"
#include "common/loop/timer.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"

namespace cpprun {

class AdminSocket {
 public:
  // Takes the body of the reply: JSON, at most limits::kAdminReplyBytes. The handler calls it once,
  // on the loop's thread, now or later. After limits::kAdminReplyTimeout the connection is closed
  // and the call has no effect.
  using Answer = std::function<void(std::string body)>;
  using Verb = std::function<void(const admin::AdminQuery& query, Answer answer)>;

  explicit AdminSocket(boost::asio::io_context& loop)
      : loop_(loop), listener_(loop), pause_(loop, [this] { watch(); }) {}
  ~AdminSocket();
  AdminSocket(const AdminSocket&) = delete;

  // Registers the handler of a verb; replaces an earlier one.
  void on(const std::string& verb, Verb answerer) { verbs_[verb] = std::move(answerer); }

  // Starts to listen. After an error the job runs on without admin tools.
  Status open();

 private:
  class Peer;

  void watch();
  void accept_some();
  void take(UniqueFd socket);
  void handle(const admin::AdminQuery& query, Answer answer);

  boost::asio::io_context& loop_;
  boost::asio::posix::stream_descriptor listener_;
  Timer pause_;
  std::map<std::string, Verb> verbs_;
  std::vector<std::weak_ptr<Peer>> peers_;
  Lifetime lifetime_;
};

}  // namespace cpprun
