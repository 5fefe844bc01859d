// AdminConnection: a tool's control connection to a coordinator, over TCP or TLS, with the nonce
// that the coordinator gave it. Blocking. Errors name the endpoint.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/endpoint.hpp"
#include "common/http/blocking_socket.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "common/tls/job_tls.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::ctl {

class AdminConnection {
 public:
  // Connects, and fetches a nonce. `tls` null: plain. All operations end within `limit`.
  static Result<std::unique_ptr<AdminConnection>> open(const Endpoint& endpoint, const JobTls* tls,
                                                       Duration limit);

  const std::string& nonce() const { return nonce_; }
  // Sets the deadline to `limit` from now.
  void extend(Duration limit) { socket_->extend(limit); }
  Status send(const control::AgentMessage& message);
  // Blocks until a message has come; a refusal is an error.
  Result<control::CoordinatorMessage> next();
  // Whether bytes come within `wait`; also true at the end of the connection.
  bool has_input(Duration wait) const;
  // The error for a message that makes no sense here.
  Error not_expected() const;

 private:
  AdminConnection(Endpoint endpoint, std::unique_ptr<BlockingSocket> socket)
      : endpoint_(std::move(endpoint)), socket_(std::move(socket)) {}
  Status greet(const JobTls* tls);
  Error named(const Error& error) const;

  const Endpoint endpoint_;
  const std::unique_ptr<BlockingSocket> socket_;
  std::string nonce_;
};

}  // namespace cpprun::ctl
