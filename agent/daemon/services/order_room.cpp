#include "agent/daemon/services/order_room.hpp"

#include <optional>
#include <utility>

#include "common/limits/operators.hpp"
#include "common/proof/proof.hpp"
#include "rendezvous/protocol/admin/orders.hpp"

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
  waiting_[order->id] = {*order, reply};
}

void OrderRoom::on_challenge(const control::Challenge& challenge) {
  const auto found = waiting_.find(challenge.id);
  if (found == waiting_.end()) return;
  if (token_.empty()) {
    const Reply reply = waiting_.extract(found).mapped().reply;
    return reply(operators::refusal(
        "the job was started with CPPRUN_OPERATOR_TOKEN, and the agent of this node without it; "
        "set it on all nodes, or give the order with the token in the environment and --endpoint "
        "HOST:PORT of the job's rendezvous"));
  }
  control::Command command{run_id_, found->second.order};
  command.proof = proof_of(token_, control::proven_words(challenge.nonce, command));
  send_(command);
}

void OrderRoom::on_answer(const control::Answer& answer) {
  const auto found = waiting_.extract(answer.id);
  if (found.empty()) return;
  found.mapped().reply(answer.is_done ? operators::done(answer.text)
                                      : operators::refusal(answer.text));
}

void OrderRoom::on_disconnected() {
  for (const auto& [id, waiting] : std::exchange(waiting_, {})) {
    waiting.reply(operators::refusal(
        "the connection to the coordinator broke; whether it has heard the order is not known, "
        "cpprunctl status shows it"));
  }
}

}  // namespace cpprun
