#include "launcher/cpprunctl/doctor/doctor_nodes.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/endpoint.hpp"
#include "common/limits/doctor.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/identity.hpp"
#include "launcher/cpprunctl/doctor/doctor_pair.hpp"
#include "launcher/cpprunctl/doctor/doctor_protocol.hpp"
#include "launcher/cpprunctl/doctor/doctor_rendezvous.hpp"
#include "launcher/cpprunctl/text/output.hpp"
#include "launcher/doctor/cross_node_checks.hpp"
#include "rendezvous/server/coordinator_environment.hpp"

namespace cpprun::ctl {
namespace {

// Of the cards that are up; `first` before all others.
std::vector<std::string> own_addresses(const std::string& first) {
  std::vector<std::string> all{first};
  ifaddrs* cards = nullptr;
  if (::getifaddrs(&cards) != 0) return all;
  for (const ifaddrs* card = cards; card != nullptr; card = card->ifa_next) {
    const int family = card->ifa_addr == nullptr ? AF_UNSPEC : card->ifa_addr->sa_family;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    const bool is_ip = family == AF_INET || family == AF_INET6;
    const bool is_told = is_ip && ::getnameinfo(card->ifa_addr, size, text.data(), text.size(),
                                                nullptr, 0, NI_NUMERICHOST) == 0;
    const std::string address = text.data();
    const bool is_own = is_loopback(address) || address == first;
    if (is_told && !is_own && all.size() < limits::kAddressesPerNode) all.push_back(address);
  }
  ::freeifaddrs(cards);
  return all;
}

std::string key(const char* what, int64_t number) {
  return std::string(what) + "/" + std::to_string(number);
}
std::string pair_key(int64_t from, int64_t to) {
  return key("looked", from) + "/" + std::to_string(to);
}

// One node's part.
class Doctor {
 public:
  Doctor(DoctorRendezvous& rendezvous, const DoctorNodesOptions& options)
      : meeting_(rendezvous), options_(options), number_(rendezvous.number()) {
    facts_.wanted = options.count;
    facts_.waited = seconds(options.wait_s);
    facts_.least_bytes_per_s = options.least_gbps * 1e9 / 8;
    facts_.most_latency = seconds(options.most_latency_ms / 1e3);
  }

  // All nodes' cards, as far as they came. False: some did not.
  Result<bool> meet(uint16_t port, const std::string& secret) {
    const doctor::NodeCard own{own_host_name(), CPPRUN_VERSION,
                               own_addresses(meeting_.own_address()), port, secret};
    if (Status said = meeting_.publish(key("card", number_), encode(own)); !said)
      return said.error();
    Duration left = facts_.waited;
    for (int64_t i = 0; i < options_.count; ++i) {
      const std::optional<std::string> text = meeting_.await(key("card", i), left);
      if (!text) {
        left = std::chrono::milliseconds(1);  // who is not here by now is looked for once
        continue;
      }
      Result<doctor::NodeCard> card = decode_card(*text);
      if (!card) return card.error();
      facts_.nodes.push_back(std::move(*card));
    }
    return static_cast<int64_t>(facts_.nodes.size()) == options_.count;
  }

  // Each with each, at any time one pair per node, and one way at a time.
  Status look_at_all() {
    const int64_t rounds = std::min(doctor::count_rounds(options_.count), limits::kDoctorNodes - 1);
    for (int64_t round = 0; round < rounds; ++round) {
      const int64_t other = doctor::partner_of(number_, round, options_.count);
      if (other == options_.count) continue;
      if (other < number_) await_look(other);
      doctor::PairFacts pair = look_at(facts_.nodes.at(static_cast<size_t>(other)));
      pair.from = number_;
      pair.to = other;
      facts_.pairs.push_back(std::move(pair));
      if (Status said = meeting_.publish(pair_key(number_, other), "1"); !said) return said;
      if (other > number_) await_look(other);
    }
    return meeting_.publish(key("pairs", number_), encode(facts_.pairs));
  }

  // What all have found, in the node that came first.
  Result<std::vector<doctor::Finding>> findings() {
    const Duration limit = limits::kDoctorPairTimeout + limits::kDoctorConnectTimeout;
    std::vector<doctor::PairFacts> all;
    for (int64_t i = 0; i < static_cast<int64_t>(facts_.nodes.size()); ++i) {
      const std::optional<std::string> text = meeting_.await(key("pairs", i), limit);
      if (!text) continue;  // it has died meanwhile; its ways are missing in the number of pairs
      auto pairs = decode_pairs(*text, options_.count);
      if (!pairs) return pairs.error();
      all.insert(all.end(), pairs->begin(), pairs->end());
    }
    facts_.pairs = std::move(all);
    return doctor::run_cross_node_checks(facts_);
  }

  const doctor::NodesFacts& facts() const { return facts_; }
  std::vector<doctor::Finding> who_came() const {
    return {doctor::run_cross_node_checks(facts_).front()};
  }

 private:
  // So that nobody is looked at by two at once; one that has died must not hold up the rest.
  void await_look(int64_t other) {
    (void)meeting_.await(pair_key(other, number_), limits::kDoctorPairTimeout);
  }

  DoctorRendezvous& meeting_;
  const DoctorNodesOptions options_;
  const int64_t number_;
  doctor::NodesFacts facts_;
};

bool is_well(const std::vector<doctor::Finding>& findings) {
  return std::ranges::none_of(
      findings, [](const auto& finding) { return finding.level == doctor::Level::Problem; });
}

void show(const std::vector<doctor::Finding>& findings, bool is_json) {
  if (is_json) return print(json_of(findings));
  print(text_of(findings));
}

// The first one tells how it ended, and stays until all have heard it: it may serve the store.
Status tell_end(DoctorRendezvous& rendezvous, int64_t count, bool was_well) {
  if (Status said = rendezvous.publish("end", was_well ? "well" : "not well"); !said) return said;
  for (int64_t i = 0; i < count; ++i) {
    if (i != rendezvous.number())
      (void)rendezvous.await(key("bye", i), limits::kDoctorConnectTimeout);
  }
  return {};
}

}  // namespace

Result<bool> run_doctors(const Endpoint& endpoint, const DoctorNodesOptions& options,
                         bool is_json) {
  const std::string secret = random_secret();
  auto answerer = PairResponder::start(static_cast<uint16_t>(options.port), secret);
  if (!answerer) return answerer.error();
  auto rendezvous = DoctorRendezvous::join(endpoint, options.count, seconds(options.wait_s));
  if (!rendezvous) return rendezvous.error();
  Doctor doctor(**rendezvous, options);
  Result<bool> all_came = doctor.meet((*answerer)->port(), secret);
  if (!all_came) return all_came.error();
  if (!*all_came) {
    show(doctor.who_came(), is_json);
    return false;
  }
  if (Status looked = doctor.look_at_all(); !looked) return looked.error();
  if ((*rendezvous)->number() == 0) {
    auto findings = doctor.findings();
    if (!findings) return findings.error();
    show(*findings, is_json);
    const bool was_well = is_well(*findings);
    if (Status told = tell_end(**rendezvous, options.count, was_well); !told) return told.error();
    return was_well;
  }
  const Duration limit = 2 * limits::kDoctorPairTimeout * options.count;
  const std::optional<std::string> end = (*rendezvous)->await("end", limit);
  (void)(*rendezvous)->publish(key("bye", (*rendezvous)->number()), "1");
  const std::string& first = doctor.facts().nodes.front().name;
  if (!end) return Error{ErrorKind::System, first + ", which came first, has not told the end"};
  if (!is_json) print("the findings stand at " + first + ", which came first\n");
  return *end == "well";
}

}  // namespace cpprun::ctl
