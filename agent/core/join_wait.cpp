#include "agent/core/join_wait.hpp"

#include <utility>

#include "agent/core/join_texts.hpp"

namespace cpprun::agent {

LogEvent JoinWait::on_wait(Instant now, const control::Wait& message, bool has_workers) {
  const bool is_delayed = message.delay > Duration{};
  const bool is_new_wait = is_delayed || (is_spare_ && !message.is_spare);
  if (is_new_wait && !has_workers) begin(now + message.delay);
  is_spare_ = message.is_spare;
  return wait_event(message, std::exchange(last_wait_, message).why);
}

// A disconnect does not restart a running timeout. If it did, a peer that accepts and hangs up
// would keep the agent waiting for ever.
void JoinWait::on_disconnected(Instant now, bool has_workers, bool has_finished) {
  const bool is_new_wait = is_spare_ || (has_finished && deadline_.is_never());
  if (is_new_wait && !has_workers) begin(now);
  is_spare_ = false;
}

std::string JoinWait::waiting_text(bool is_connected) const {
  return agent::waiting_text(is_connected, last_wait_.why);
}

std::string JoinWait::timeout_text(bool is_connected, const std::string& lost,
                                   bool has_finished) const {
  return join_timeout_text(
      {timeout_, is_connected, last_wait_.why, last_wait_.missing_nodes, lost, has_finished});
}

}  // namespace cpprun::agent
