#include "tests/support/sim/swarm/leader_faults.hpp"

#include <utility>

namespace cpprun::sim {

void LeaderFaults::again(Duration mean, std::function<void()> fault) {
  if (mean == Duration{}) return;
  cluster_.in(prng_.until_event(mean), [this, mean, fault = std::move(fault)] {
    if (cluster_.now() >= end_) return;
    fault();
    again(mean, fault);
  });
}

void LeaderFaults::on_leader(Duration mean, std::function<void(Node&)> fault) {
  again(mean, [this, fault = std::move(fault)] {
    if (Node* target = leader()) fault(*target);
  });
}

void LeaderFaults::freeze_leader(Duration mean) {
  on_leader(mean, [this](Node& node) {
    cluster_.freeze(node);
    later([this, &node] { cluster_.thaw(node); });
  });
}

void LeaderFaults::cut_leader(Duration mean) {
  on_leader(mean, [this](Node& node) {
    cluster_.network().cut_off(node.spec().host);
    later([this, host = node.spec().host] { cluster_.network().mend_host(host); });
  });
}

void LeaderFaults::kill_leader(Duration mean) {
  on_leader(mean, [this](Node& node) { cluster_.kill(node, prng_.chance(0.2)); });
}

void LeaderFaults::later(std::function<void()> what) {
  cluster_.in(prng_.up_to(lasts_max_), std::move(what));
}

}  // namespace cpprun::sim
