// AgentDaemon: an agent whose coordinator is elected (R18).
#include <utility>

#include "agent/daemon/daemon_impl.hpp"
#include "common/log/log.hpp"

namespace cpprun {

Result<uint16_t> AgentDaemon::Impl::keep_port() {
  Result<PortReservation> port = PortReservation::make(std::nullopt);
  if (!port) return port.error();
  control_port_.emplace(std::move(*port));
  return control_port_->port();
}

AgentDoors AgentDaemon::Impl::doors() {
  AgentDoors doors;
  doors.led_from = [this, way = way_](const Endpoint& place) {
    WayBack::post(way, [this, place] { on_led_from(place); });
  };
  doors.no_election = [this, way = way_](const std::string& why) {
    WayBack::post(way, [this, why] { no_election_ = why; });
  };
  return doors;
}

int AgentDaemon::Impl::run_elected(Arbiter arbiter) {
  arbiter_ = std::move(arbiter);
  return run(Endpoint{}, false);
}

// There may be no connection yet: the snapshots here are looked at first.
void AgentDaemon::Impl::on_led_from(const Endpoint& place) {
  if (finish_) return;
  no_election_.clear();
  coordinator_ = place;
  log::info("the job is led from " + to_string(place));
  tell_core([&](agent::Effects& e) { core_->on_led_from(place, e); });
}

void AgentDaemon::Impl::tell_arbiter() {
  const Instant now = boot_now();
  const std::pair standing(core_->is_led(now), core_->would_lead());
  if (told_ == standing && now - told_at_ < config_.rendezvous.conf.heartbeat / 2) return;
  if (standing.first) no_election_.clear();
  told_ = standing;
  told_at_ = now;
  arbiter_(standing.first, standing.second);
}

}  // namespace cpprun
