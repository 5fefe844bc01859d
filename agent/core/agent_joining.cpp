// Agent: the time before its first round, in which it is refused, waits, hosts or gives up.
#include <utility>

#include "agent/core/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::agent {

// ---------------------------------------------------------------- refused

void Agent::on(Instant, const control::Refused& message, Effects& effects) {
  effects.push_back(Disconnect{has_workers()});
  std::string text = "the coordinator refused this agent: " + message.why;
  if (message.occupant) text = full_job(*message.occupant);
  finish(Finish{Finish::How::Error, 0, std::move(text), {}, 0}, effects);
}

// The user named no job, and has met another of the same default name.
std::string Agent::full_job(const control::Occupant& by) const {
  const std::string host = text::one_line(by.host, limits::kNameBytes);
  const std::string pid = by.pid > 0 ? "pid " + std::to_string(by.pid) : "another agent";
  const std::string where = host == options_.hello.node.name ? "" : " on " + host;
  return "job '" + options_.hello.run_id + "' already runs at " + options_.endpoint + " (" + pid +
         where + ")" + "; give --rdzv-id=NAME to run another job there";
}

// ---------------------------------------------------------------- waiting

void Agent::on(Instant now, const control::Wait& message, Effects& effects) {
  const bool is_new_wait = is_spare_ && !message.is_spare && !has_workers();
  if (is_new_wait) join_deadline_ = now + options_.join_timeout;
  is_spare_ = message.is_spare;
  knows_heir_ = message.heir.has_value();
  // A spare may wait for as long as the job runs, without a worker to show for it.
  const bool is_news = message.is_spare && message.why != last_wait_;
  const auto level = message.is_reminder || is_news ? Note::Level::Warning : Note::Level::Info;
  last_wait_ = message.why;
  if (message.heir && !is_leading_ && is_fenced()) {
    const control::Heir& heir = *message.heir;
    effects.push_back(Routes{{Endpoint{heir.address, static_cast<uint16_t>(heir.port)}}});
  }
  effects.push_back(Note{level, "waiting: " + message.why});
}

// Before the first round; "" later.
std::string Agent::waited_for() const {
  if (state_ != State::Joining || world_.round != RoundNumber()) return "";
  if (!is_connected_) return "while waiting for the coordinator; no worker was started";
  const std::string what = last_wait_.empty() ? "for the first round" : "(" + last_wait_ + ")";
  return "while waiting " + what + "; no worker was started";
}

// ---------------------------------------------------------------- hosting

// An agent that was never welcomed may host its job as soon as nobody listens at the endpoint. One
// that was may do so once all that its coordinator can have granted has ended (I1), unless another
// node is to lead the job then.
bool Agent::may_host(Instant now) const {
  if (state_ != State::Joining || is_connected_ || knows_heir_ || decided_) return false;
  if (world_.round != RoundNumber()) return false;
  if (epoch_ == Epoch()) return true;
  return is_fenced() && now >= heard_at_ + lease_;
}

// ---------------------------------------------------------------- giving up

void Agent::give_up_joining(Effects& effects) {
  std::string text = "timed out after " +
                     std::to_string(static_cast<int64_t>(to_seconds(options_.join_timeout))) +
                     " s without a round";
  if (!is_connected_) text += ": no connection to the coordinator";
  if (is_connected_ && !last_wait_.empty()) text += ": " + last_wait_;
  if (!lost_.empty()) text += "; the last round ended because " + lost_ + " [class=lost_node]";
  if (state_ == State::Done) text += "; the workers here ended well, the job's outcome is unknown";
  text += " (--rdzv-conf=join_timeout=SECONDS waits longer)";
  effects.push_back(Tell{control::Leave{"the join timeout was reached"}});
  effects.push_back(Disconnect{false});
  Finish how{Finish::How::Error, 0, text, {}, lost_.empty() ? 0 : world_.restart_count};
  how.lost = lost_;
  finish(std::move(how), effects);
}

}  // namespace cpprun::agent
