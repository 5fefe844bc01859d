// OrderRoom: orders for the whole job that operators' tools give to this agent, on their way to the
// coordinator and back. What an order means is the coordinator's business.
//
// Thread: the loop's. Owner: the daemon. Each question is answered once: by the coordinator, or
// with what kept it from answering.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "agent/core/operator_words.hpp"
#include "rendezvous/protocol/orders.hpp"

namespace cpprun {

class OrderRoom {
 public:
  using Reply = std::function<void(std::string body)>;
  // False: there is no connection to the coordinator.
  using Send = std::function<bool(const control::Order&)>;

  explicit OrderRoom(Send send) : send_(std::move(send)) {}

  // `question` says the kind: restart, stop (resumable), drain (node), scale (nodes).
  void ask(const operators::Question& question, const Reply& reply);
  void on_answer(const control::Answer& answer);
  void on_disconnected();

 private:
  Send send_;
  std::map<int64_t, Reply> waiting_;  // by the order's number
  int64_t newest_ = 0;
};

}  // namespace cpprun
