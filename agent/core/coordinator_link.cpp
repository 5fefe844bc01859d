#include "agent/core/coordinator_link.hpp"

#include <algorithm>

#include "agent/core/join_texts.hpp"
#include "common/check.hpp"

namespace cpprun::agent {

void CoordinatorLink::on_connected(const Endpoint& peer) {
  CPPRUN_CHECK(!is_connected_);
  is_connected_ = true;
  is_ignored_ = is_registered_ = false;
  peer_ = peer;
  ++connections_;
}

bool CoordinatorLink::on_registered(Term term, Effects& effects) {
  if (term < term_) {
    is_ignored_ = true;
    if (!std::exchange(has_warned_, true))
      effects.push_back(LogEvent{LogEvent::Level::Warning, kOlderTermText});
    effects.push_back(Reconnect{true});
    return false;
  }
  term_ = term;
  has_warned_ = false;
  led_by_ = peer_;
  is_registered_ = true;
  has_evidence_ = false;
  return true;
}

// The process at the job's endpoint knows the address of the coordinator (R17).
void CoordinatorLink::on_redirect(const control::Redirect& message, bool is_blank,
                                  Effects& effects) {
  if (is_leading_ || (message.term < term_ && !is_blank)) return;
  if (is_blank) term_ = Term();  // that of a coordinator that never led the job
  is_ignored_ = knows_standby_ = true;
  effects.push_back(Routes{{Endpoint{message.address, static_cast<uint16_t>(message.port)}}, true});
  effects.push_back(Reconnect{});
}

void CoordinatorLink::on_led_from(const Endpoint& place, Effects& effects) {
  effects.push_back(Routes{{place}, true});
  if (!is_connected_ || peer_ == place) return;
  is_ignored_ = true;
  effects.push_back(Reconnect{});
}

bool CoordinatorLink::on_refused(const std::vector<Endpoint>& places) {
  const bool is_ours = std::find(places.begin(), places.end(), led_by_) != places.end();
  if (is_leading_ || is_connected_ || term_ == Term() || !is_ours) return false;
  has_evidence_ = true;
  return true;
}

Term CoordinatorLink::begin_leading() {
  is_leading_ = true;
  return Term(term_.value + 1);
}

}  // namespace cpprun::agent
