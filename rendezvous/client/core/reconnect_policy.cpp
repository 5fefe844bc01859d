#include "rendezvous/client/core/reconnect_policy.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun {

namespace {

constexpr const char* kStoreMet =
    "what listens there is torch's TCPStore (a torchrun agent, or a script that serves it); start "
    "all agents with cpprun, or give another port";
constexpr const char* kNonsense = "what listens there does not speak cpprun's protocol";

// What an unexpected peer did, its process, and what helps.
std::string text_of_peer(const std::string& what, const std::string& owner) {
  return what + (owner.empty() ? "" : " (" + owner + ")") + "; end it, or give another port";
}

}  // namespace

void ReconnectPolicy::start(Effects& effects) const {
  if (!routes_.empty()) effects.emplace_back(Connect{});
}

void ReconnectPolicy::add_job_endpoints() {
  routes_.push_back(options_.endpoint);
  for (uint16_t port : options_.further_ports) {
    routes_.push_back(Endpoint{options_.endpoint.host, port});
  }
}

void ReconnectPolicy::set_routes(const std::vector<Endpoint>& others, bool is_sure, bool is_own) {
  if (options_.is_led_by_election) return go_to(others.front());
  const Endpoint current = target();
  is_own_ = is_own;
  routes_ = others;
  if (!is_own) add_job_endpoints();
  if (!is_own && !is_sure) routes_.push_back(current);
  std::vector<Endpoint> once;
  for (const Endpoint& route : routes_) {
    if (std::find(once.begin(), once.end(), route) == once.end()) once.push_back(route);
  }
  routes_ = std::move(once);
  auto place = is_sure ? routes_.begin() : std::find(routes_.begin(), routes_.end(), current);
  at_ = static_cast<size_t>(place - routes_.begin());
  tried_ = 0;
  if (!is_sure) return;
  back_off_ = limits::kReconnectFirst;
  if (!is_connected_ && !deadline_.is_never()) deadline_ = Instant{};  // at once
}

// Does not wait for the pending attempt: its host may never reply.
void ReconnectPolicy::go_to(const Endpoint& place) {
  routes_ = {place};
  at_ = tried_ = 0;
  back_off_ = limits::kReconnectFirst;
  if (!is_connected_ && !is_closed_) deadline_ = Instant{};
}

void ReconnectPolicy::on_connected(Instant now) {
  is_connected_ = true;
  is_registered_ = false;
  has_sent_garbage_ = false;
  connected_at_ = now;
  input_.clear();
  taken_ = 0;
  // A peer that sends no coordinator's message in time is something else: a torch store, an ssh
  // server, a proxy.
  const bool is_watched = !is_own_ && !is_closed_;
  deadline_ = is_watched ? now + limits::kHelloTimeout : Instant::never();
}

void ReconnectPolicy::on_connect_failed(Instant now, const std::string& why,
                                        const std::vector<Endpoint>& refused, Effects& effects) {
  if (is_closed_) return;
  report_trouble(now, why, effects);
  if (!refused.empty()) effects.emplace_back(Refused{refused});
  retry(now, false);
}

// `is_here`: try the current endpoint again after a pause. Otherwise try the next one, and pause
// after all have failed.
void ReconnectPolicy::retry(Instant now, bool is_here) {
  deadline_ = now;
  if (!is_here) {
    at_ = (at_ + 1) % routes_.size();
    if (++tried_ < routes_.size()) return;
  }
  tried_ = 0;
  deadline_ = now + back_off_;
  back_off_ = std::min(back_off_ * 2, options_.back_off_max);
}

// A coordinator that no longer leads the job replies at once, so a reply is no reason to return to
// short pauses.
void ReconnectPolicy::try_next_endpoint(Instant now) {
  at_ = (at_ + 1) % routes_.size();
  tried_ = 0;
  deadline_ = now + unwanted_back_off_;
  unwanted_back_off_ = std::min(unwanted_back_off_ * 2, options_.back_off_max);
}

void ReconnectPolicy::on_bytes(std::span<const uint8_t> bytes) {
  input_.erase(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  input_.insert(input_.end(), bytes.begin(), bytes.end());
}

std::optional<control::CoordinatorMessage> ReconnectPolicy::next_message(Instant now,
                                                                         Effects& effects) {
  if (!is_connected_) return std::nullopt;
  control::FrameView frame = control::next_frame(std::span(input_).subspan(taken_));
  if (frame.state == control::FrameView::State::NeedMore) return std::nullopt;
  Result<control::CoordinatorMessage> message =
      frame.state == control::FrameView::State::Whole
          ? control::decode_coordinator(frame.body)
          : Result<control::CoordinatorMessage>(Error{ErrorKind::Protocol, kNonsense});
  if (!message) {
    if (is_registered_) report_trouble(now, message.error().text, effects);
    has_sent_garbage_ = true;
    on_broken(now, effects);
    return std::nullopt;
  }
  taken_ += frame.consumed;
  is_registered_ = true;
  tried_ = 0;
  deadline_ = Instant::never();
  back_off_ = limits::kReconnectFirst;
  trouble_since_.reset();
  last_trouble_.clear();
  return std::move(*message);
}

void ReconnectPolicy::on_broken(Instant now, Effects& effects, bool tries_elsewhere,
                                const std::string& why) {
  if (!std::exchange(is_connected_, false)) return;
  if (is_closed_) {
    effects.emplace_back(ResetConnection{});
    return;
  }
  if (!is_registered_ && !is_own_) report_unexpected_peer(now, why, effects);
  if (is_registered_ && tries_elsewhere) {
    try_next_endpoint(now);
  } else {
    unwanted_back_off_ = limits::kReconnectFirst;
    retry(now, is_registered_);
  }
  effects.emplace_back(ResetConnection{});
  effects.emplace_back(Broken{});
}

// The peer is no coordinator, or one that is too busy to reply.
void ReconnectPolicy::report_unexpected_peer(Instant now, const std::string& why,
                                             Effects& effects) {
  const bool was_silent = now - connected_at_ >= limits::kHelloTimeout;
  const char* const what =
      has_sent_garbage_ ? kNonsense
      : was_silent      ? "connected, but no coordinator answers: another program may listen there"
                        : "connected, but what listens there hangs up";
  unexpected_peer_ = why.empty() ? what : "";
  last_trouble_ = why.empty() ? text_of_peer(what, owner_) : why;
  if (!trouble_since_) trouble_since_ = connected_at_;
  const bool is_worth_it = target() == options_.endpoint;  // other endpoints are ports of agents
  if (!is_worth_it || std::exchange(is_probing_, true)) return;
  effects.emplace_back(Probe{options_.endpoint});
}

void ReconnectPolicy::on_probed(Instant now, bool is_torch_store, const std::string& owner,
                                Effects& effects) {
  is_probing_ = false;
  owner_ = owner;
  if (!unexpected_peer_.empty()) last_trouble_ = text_of_peer(unexpected_peer_, owner_);
  report_trouble(now, is_torch_store ? kStoreMet : std::string(last_trouble_), effects);
}

void ReconnectPolicy::report_trouble(Instant now, const std::string& why, Effects& effects) {
  if (!trouble_since_) trouble_since_ = now;
  last_trouble_ = why;
  // At most one line a minute, and none for short trouble.
  const bool is_due = !reported_at_ || now - *reported_at_ >= options_.wait_reminder_interval;
  const bool is_lasting = now - *trouble_since_ >= limits::kHelloTimeout;
  if (!is_lasting || !is_due) return;
  reported_at_ = now;
  auto waited = static_cast<int64_t>(to_seconds(now - *trouble_since_));
  const Endpoint& place = options_.is_led_by_election ? target() : options_.endpoint;
  effects.emplace_back(Trouble{"can't reach the coordinator at " + to_string(place) + " for " +
                               std::to_string(waited) + " s: " + why});
}

void ReconnectPolicy::close() {
  is_closed_ = true;
  deadline_ = Instant::never();
}

void ReconnectPolicy::on_time(Instant now, Effects& effects) {
  if (now < deadline_) return;
  deadline_ = Instant::never();
  if (is_connected_) {
    on_broken(now, effects);  // no message in time
  } else {
    effects.emplace_back(Connect{});
  }
}

}  // namespace cpprun
