// AgentSocket: the connection to the agent and the shared page received over it, or neither. For
// the sources of cpprun/worker only. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/limits/channel.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/time.hpp"
#include "rendezvous/client/store/deadline.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"
#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun::worker {

class AgentSocket {
 public:
  // `name`: name of an abstract unix socket, without the leading zero. Never fails: after any error
  // the result is a socket without an agent.
  static AgentSocket connect(const std::string& name);
  AgentSocket(AgentSocket&&) noexcept;
  AgentSocket& operator=(AgentSocket&&) = delete;
  ~AgentSocket();

  WorkerPage* page() const { return page_; }  // null: no agent
  // The agent knows the messages about snapshots and arenas.
  bool has_snapshots() const { return page_ != nullptr && page_->version >= 2; }
  // The agent knows the message Resumed.
  bool has_resumed() const { return page_ != nullptr && page_->version >= 3; }
  // The agent knows the message FirstStep.
  bool has_first_step() const { return page_ != nullptr && page_->version >= 4; }
  // The agent knows the messages Elastic to NewRound.
  bool has_elastic() const { return page_ != nullptr && page_->version >= 5; }
  // Does not wait; the message is lost if the agent has gone or its socket is full.
  void send(const channel::Message& message) const;

  struct Answer {
    channel::Message message;
    std::vector<UniqueFd> descriptors;  // that came beside it

    int descriptor() const { return descriptors.empty() ? -1 : descriptors.back().get(); }
  };
  // Sends `message` with a new request id and waits for the answer. Empty if none arrives within
  // `timeout`. Concurrent callers take turns.
  std::optional<Answer> request(channel::Message message,
                                Duration timeout = limits::kPermissionTimeout) const;
  // The next message of an agent that sends some by itself. Empty: the deadline passed, the agent
  // closed the connection, or the bytes are no message.
  std::optional<Answer> receive(Deadline until) const;
  // Ends a receive() of another thread, and each later one.
  void shut_down() const;

 private:
  AgentSocket() = default;
  bool open(const std::string& name);
  bool receive_page();
  bool map(int memory);

  UniqueFd socket_;
  struct Requests {
    std::mutex mutex;
    uint32_t last_request_id = 0;
  };
  std::unique_ptr<Requests> requests_ = std::make_unique<Requests>();
  WorkerPage* page_ = nullptr;
};

// Whether the agent's memory has at least `bytes` bytes and cannot shrink: touching memory that
// shrinks could kill this process.
bool is_safe_memory(int descriptor, uint64_t bytes);

}  // namespace cpprun::worker
