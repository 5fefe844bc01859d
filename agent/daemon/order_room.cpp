#include "agent/daemon/order_room.hpp"

#include <optional>
#include <utility>

#include "common/limits/operators.hpp"
#include "rendezvous/protocol/order_kind.hpp"

namespace cpprun {
namespace {

Result<control::Order> order_of(const operators::Question& question) {
  const std::optional<control::OrderKind> kind = control::order_kind(question.word("kind"));
  if (!kind) {
    return Error{ErrorKind::BadValue, "'" + question.word("kind") +
                                          "' is no order; there are restart, stop, drain, scale"};
  }
  control::Order order;
  order.kind = *kind;
  order.is_resumable = question.number("resumable") == 1;
  order.node = question.word("node");
  order.nodes = question.number("nodes").value_or(0);
  return order;
}

}  // namespace

void OrderRoom::ask(const operators::Question& question, const Reply& reply) {
  Result<control::Order> order = order_of(question);
  if (!order) return reply(operators::refusal(order.error().text));
  if (waiting_.size() >= limits::kOperatorConnections) {
    return reply(operators::refusal("the coordinator has not answered earlier orders yet"));
  }
  order->id = ++newest_;
  if (!send_(*order)) {
    return reply(operators::refusal(
        "this node has no connection to the coordinator, which would have to decide; "
        "cpprunctl stop --here stops the nodes of this machine"));
  }
  waiting_[order->id] = reply;
}

void OrderRoom::on_answer(const control::Answer& answer) {
  const auto found = waiting_.extract(answer.id);
  if (found.empty()) return;
  found.mapped()(answer.is_done ? operators::done(answer.text) : operators::refusal(answer.text));
}

void OrderRoom::on_disconnected() {
  for (const auto& [id, reply] : std::exchange(waiting_, {})) {
    reply(operators::refusal(
        "the connection to the coordinator broke; whether it has heard the order is not known, "
        "cpprunctl status shows it"));
  }
}

}  // namespace cpprun
