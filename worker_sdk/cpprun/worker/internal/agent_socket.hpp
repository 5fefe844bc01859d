// AgentSocket: the connection to the agent and the page that came over it, or neither. For the
// worker's own sources. Once made it may be used by any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time.hpp"
#include "rendezvous/client/store/deadline.hpp"
#include "rendezvous/client/store/descriptor.hpp"
#include "rendezvous/protocol/worker/worker_channel.hpp"
#include "rendezvous/protocol/worker/worker_page.hpp"

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
  // It knows the messages about snapshots and arenas.
  bool has_snapshots() const { return page_ != nullptr && page_->version >= 2; }
  // It wants to know what training goes on from.
  bool has_resumed() const { return page_ != nullptr && page_->version >= 3; }
  // It wants to know when the first step is over.
  bool has_first_step() const { return page_ != nullptr && page_->version >= 4; }
  // Sent without waiting; an agent that has gone, or takes nothing, misses it.
  void send(const channel::Message& message) const;

  struct Answer {
    channel::Message message;
    Descriptor beside;  // maybe
  };
  // Sends the question that `make` makes of its number, and waits for the answer. Nothing if none
  // came within `patience`. Others who ask stand in line.
  std::optional<Answer> request(const std::function<channel::Message(uint32_t request_id)>& make,
                                Duration patience) const;

 private:
  AgentSocket() = default;
  bool open(const std::string& name);
  std::optional<Answer> receive(Deadline until) const;
  bool receive_page();
  bool map(int memory);

  Descriptor socket_;
  struct Asking {
    std::mutex mutex;
    uint32_t last_question = 0;
  };
  std::unique_ptr<Asking> requesting_ = std::make_unique<Asking>();
  WorkerPage* page_ = nullptr;
};

}  // namespace cpprun::worker
