// Node: what its agent must make of coordinators that follow each other (R17): only forwards, and
// at once.
#include "tests/support/sim/node.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

// Before the agent hears it.
void Node::judge_move(ConnectionId connection, const control::CoordinatorMessage& message) {
  const bool is_leading = lead_ != nullptr && lead_->is_awake();
  if (is_leading) return;
  if (const auto* welcome = std::get_if<control::Welcome>(&message)) {
    if (welcome->epoch < epoch_) must_leave(connection, "a coordinator of an older epoch");
  }
  const auto* moved = std::get_if<control::Moved>(&message);
  if (moved == nullptr) return;
  if (is_blank() || moved->epoch >= epoch_) {
    must_leave(connection, "who told it that the job is led from elsewhere");
  }
}

bool Node::must_stay(const control::CoordinatorMessage& message) const {
  const auto* moved = std::get_if<control::Moved>(&message);
  return moved != nullptr && !is_blank() && moved->epoch < epoch_;
}

// Unless it stands still it hangs up in the same instant.
void Node::must_leave(ConnectionId connection, const std::string& why) {
  around_.agenda.in(1ms, [this, connection, why] {
    const bool stays = is_running() && !is_frozen_ && !is_closing_ && connection_ == connection;
    around_.checks.require(!stays, "R17: " + label() + " stays with " + why);
  });
}

}  // namespace cpprun::sim
