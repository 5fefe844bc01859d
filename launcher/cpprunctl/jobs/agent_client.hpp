// How cpprunctl reaches agents and coordinators: the unix sockets of agents on this machine, and
// HTTP at a rendezvous port. Blocking, each call within its limit. Replies are untrusted input.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"

namespace cpprun {
class BlockingSocket;
}

namespace cpprun::ctl {

// An agent that listens on this machine (in this network namespace).
struct LocalAgent {
  int64_t pid = 0;     // in its own pid namespace
  std::string socket;  // name of its abstract unix socket
};

// In the order of their pids. Pure: parses the text of /proc/net/unix.
std::vector<LocalAgent> agents_in(const std::string& proc_net_unix);
std::vector<LocalAgent> local_agents();

// A query that was sent to an agent. Several may be open at a time: a suspended agent then delays
// the others' replies by no more than one limit.
class OpenQuery {
 public:
  // `limit` covers the reply too. Error: the agent is gone or belongs to another user.
  static Result<OpenQuery> send(const LocalAgent& agent, const admin::AdminQuery& query,
                                Duration limit);
  OpenQuery(OpenQuery&&) noexcept;
  ~OpenQuery();

  // The user that the agent runs as.
  int64_t owner() const { return owner_; }

  // The agent's reply; to be called once. Error: the agent does not answer, or refuses.
  Result<std::string> receive();

 private:
  OpenQuery(const LocalAgent& agent, Duration limit);

  LocalAgent agent_;
  int64_t owner_ = -1;
  std::unique_ptr<BlockingSocket> socket_;
};

// send() and receive().
Result<std::string> ask(const LocalAgent& agent, const admin::AdminQuery& query, Duration limit);

// The body of a reply with status 200.
Result<std::string> http_get(const Endpoint& endpoint, const std::string& path, Duration limit);

}  // namespace cpprun::ctl
