// AgentSocket: the connection to the agent and the page that came over it, or neither. For the
// worker's own sources. Once made it may be used by any thread.
#pragma once

#include <string>

#include "common/worker_channel.hpp"
#include "common/worker_page.hpp"
#include "cpprun/worker/internal/descriptor.hpp"

namespace cpprun::worker {

class AgentSocket {
 public:
  // `name`: of an abstract unix socket, without its leading zero. No error comes of anything:
  // whatever goes wrong, there is no agent.
  static AgentSocket connect(const std::string& name);
  AgentSocket(AgentSocket&&) noexcept;
  AgentSocket& operator=(AgentSocket&&) = delete;
  ~AgentSocket();

  WorkerPage* page() const { return page_; }  // null: no agent
  // Sent without waiting; an agent that has gone, or takes nothing, misses it.
  void send(const channel::Message& message) const;

 private:
  AgentSocket() = default;
  bool open(const std::string& name);
  bool receive_page();
  bool map(int memory);

  Descriptor socket_;
  WorkerPage* page_ = nullptr;
};

}  // namespace cpprun::worker
