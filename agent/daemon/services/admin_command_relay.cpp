#include "agent/daemon/services/admin_command_relay.hpp"

#include <optional>
#include <utility>

#include "common/limits/admin.hpp"
#include "common/proof/hmac.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun {
namespace {

Result<control::AdminCommand> command_of(const admin::AdminQuery& query) {
  const std::optional<control::AdminCommandKind> kind =
      control::admin_command_kind(query.parameter("kind"));
  if (!kind) {
    return Error{ErrorKind::BadValue,
                 "'" + query.parameter("kind") +
                     "' is no admin command; there are restart, stop, drain, scale"};
  }
  control::AdminCommand command;
  command.kind = *kind;
  command.is_resumable = query.number("resumable") == 1;
  command.node = query.parameter("node");
  command.nodes = query.number("nodes").value_or(0);
  return command;
}

}  // namespace

void AdminCommandRelay::ask(const admin::AdminQuery& query, const Reply& reply) {
  Result<control::AdminCommand> command = command_of(query);
  if (!command) return reply(admin::refusal(command.error().text));
  if (waiting_.size() >= limits::kAdminConnections) {
    return reply(admin::refusal("the coordinator has not answered earlier admin commands yet"));
  }
  command->id = ++last_id_;
  if (!send_(*command)) {
    return reply(admin::refusal(
        "this node has no connection to the coordinator, which would have to decide; "
        "cpprunctl stop --here stops the nodes of this machine"));
  }
  waiting_[command->id] = {*command, reply};
}

void AdminCommandRelay::on_challenge(const control::Challenge& challenge) {
  const auto found = waiting_.find(challenge.id);
  if (found == waiting_.end()) return;
  if (token_.empty()) {
    const Reply reply = waiting_.extract(found).mapped().reply;
    return reply(admin::refusal(
        "the job was started with CPPRUN_ADMIN_TOKEN, and the agent of this node without it; "
        "set it on all nodes, or give the command with the token in the environment and --endpoint "
        "HOST:PORT of the job's rendezvous"));
  }
  control::AdminRequest command{run_id_, found->second.command};
  command.mac = hmac_of(token_, control::admin_mac_input(challenge.nonce, command));
  send_(command);
}

void AdminCommandRelay::on_answer(const control::AdminReply& answer) {
  const auto found = waiting_.extract(answer.id);
  if (found.empty()) return;
  found.mapped().reply(answer.is_done ? admin::done(answer.text) : admin::refusal(answer.text));
}

void AdminCommandRelay::on_disconnected() {
  for (const auto& [id, waiting] : std::exchange(waiting_, {})) {
    waiting.reply(
        admin::refusal("the connection to the coordinator broke; whether it has received the "
                       "command is not known, "
                       "cpprunctl status shows it"));
  }
}

}  // namespace cpprun
