#include "tests/support/sim/swarm/swarm_elected.hpp"

#include <array>
#include <utility>

#include "tests/support/sim/swarm/fault_kinds.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::array<FaultKind<ElectedRates>, 8> kElectedFaults{{
    {"cut-way-to-etcd", &ElectedRates::cut_way, 0.5},
    {"cut-etcd", &ElectedRates::cut_etcd, 0.3},
    {"stop-etcd", &ElectedRates::stop_etcd, 0.2},
    {"freeze-leader", &ElectedRates::freeze_leader, 0.5},
    {"cut-leader", &ElectedRates::cut_leader, 0.4},
    {"kill-leader", &ElectedRates::kill_leader, 0.3},
    {"power-leader", &ElectedRates::power_leader, 0.3},
    {"blind-leader", &ElectedRates::blind_leader, 0.4},
}};

}  // namespace

std::string ElectedRates::text() const {
  std::string text = "\netcd:";
  append(text, " %s=%.3f", "loses-answers", loses_answers);
  append(text, " %s=%.3f", "lingers", lingers);
  append_means(text, kElectedFaults, *this);
  return text;
}

ElectedRates draw_elected(Prng prng, ClusterOptions& options) {
  options.has_etcd = true;
  options.is_first_embedded = false;
  options.etcd.ttl_least_s = prng.between(1, 2);
  ElectedRates rates;
  for (const auto& kind : kElectedFaults) {
    if (prng.chance(kind.is_on)) rates.*kind.mean = prng.between(Duration(500ms), Duration(8s));
  }
  if (prng.chance(0.5)) rates.loses_answers = 0.3 * prng.share();
  if (prng.chance(0.5)) rates.lingers = 0.3 * prng.share();
  return rates;
}

void ElectedFaults::plan() {
  cluster_.etcd().set_troubles(rates_.loses_answers, rates_.lingers);
  again(rates_.cut_way, [this] { cut_way(); });
  again(rates_.cut_etcd, [this] {
    cluster_.network().cut_off(kEtcdHost);
    later([this] { cluster_.network().mend_host(kEtcdHost); });
  });
  again(rates_.stop_etcd, [this] {
    cluster_.etcd().stop();
    later([this] { cluster_.etcd().start(); });
  });
  freeze_leader(rates_.freeze_leader);
  cut_leader(rates_.cut_leader);
  kill_leader(rates_.kill_leader);
  on_leader(rates_.power_leader, [this](Node& node) {
    cluster_.cut_power(node);
    later([this, host = node.spec().host] { cluster_.network().set_power(host, true); });
  });
  // It reaches its agents, but not etcd.
  on_leader(rates_.blind_leader, [this](Node& node) {
    const HostId host = node.spec().host;
    cluster_.network().cut(host, kEtcdHost);
    later([this, host] { cluster_.network().mend(host, kEtcdHost); });
  });
}

Node* ElectedFaults::leader() {
  Node* elected = cluster_.elected();
  const bool is_awake = elected != nullptr && elected->is_running() && !elected->is_frozen();
  return is_awake ? elected : nullptr;
}

// Between one host and etcd, one way or both.
void ElectedFaults::cut_way() {
  const auto& nodes = cluster_.nodes();
  if (nodes.empty()) return;
  const auto count = static_cast<int64_t>(nodes.size());
  HostId from = nodes[static_cast<size_t>(prng_.below(count))]->spec().host;
  HostId to = kEtcdHost;
  if (prng_.chance(0.5)) std::swap(from, to);
  const bool is_both = prng_.chance(0.5);
  cluster_.network().cut(from, to);
  if (is_both) cluster_.network().cut(to, from);
  later([this, from, to] {
    cluster_.network().mend(from, to);
    cluster_.network().mend(to, from);
  });
}

}  // namespace cpprun::sim
