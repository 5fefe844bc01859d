#include "launcher/cpprunctl/doctor/doctor.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/endpoint.hpp"
#include "common/limits/admin.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "common/version.hpp"
#include "launcher/cpprunctl/doctor/doctor_pair.hpp"
#include "launcher/cpprunctl/doctor/doctor_protocol.hpp"
#include "launcher/cpprunctl/doctor/doctor_rendezvous.hpp"
#include "launcher/doctor/cross_node_checks.hpp"
#include "launcher/doctor/probe.hpp"
#include "launcher/report/text_table.hpp"
#include "rendezvous/server/coordinator_environment.hpp"

namespace cpprun {
namespace {

using namespace ctl;

// Addresses of the interfaces that are up; `first` comes first.
std::vector<std::string> own_addresses(const std::string& first) {
  std::vector<std::string> all{first};
  ifaddrs* cards = nullptr;
  if (::getifaddrs(&cards) != 0) return all;
  for (const ifaddrs* card = cards; card != nullptr; card = card->ifa_next) {
    const int family = card->ifa_addr == nullptr ? AF_UNSPEC : card->ifa_addr->sa_family;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    const bool is_ip = family == AF_INET || family == AF_INET6;
    const bool has_text = is_ip && ::getnameinfo(card->ifa_addr, size, text.data(), text.size(),
                                                 nullptr, 0, NI_NUMERICHOST) == 0;
    const std::string address = text.data();
    const bool is_own = is_loopback(address) || address == first;
    if (has_text && !is_own && all.size() < limits::kAddressesPerNode) all.push_back(address);
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

// The part of this node in the checks of all nodes.
class Doctor {
 public:
  Doctor(DoctorRendezvous& rendezvous, const DoctorNodesOptions& options)
      : rendezvous_(rendezvous), options_(options), number_(rendezvous.number()) {
    facts_.wanted = options.count;
    facts_.waited = seconds(options.wait_s);
    facts_.least_bytes_per_s = options.least_gbps * 1e9 / 8;
    facts_.most_latency = seconds(options.most_latency_ms / 1e3);
  }

  // Exchanges the nodes' cards. False: some nodes did not join in time.
  Result<bool> exchange_cards(uint16_t port, const std::string& secret) {
    const doctor::NodeCard own{own_host_name(), version(), own_addresses(rendezvous_.own_address()),
                               port, secret};
    if (Status published = rendezvous_.publish(key("card", number_), encode(own)); !published)
      return published.error();
    Duration left = facts_.waited;
    for (int64_t i = 0; i < options_.count; ++i) {
      const std::optional<std::string> text = rendezvous_.await(key("card", i), left);
      if (!text) {
        left = std::chrono::milliseconds(1);  // the time is over: check each other node once
        continue;
      }
      Result<doctor::NodeCard> card = decode_card(*text);
      if (!card) return card.error();
      facts_.nodes.push_back(std::move(*card));
    }
    return static_cast<int64_t>(facts_.nodes.size()) == options_.count;
  }

  // Measures all pairs: a node is in one pair at a time, and one direction is measured at a time.
  Status measure_all() {
    const int64_t rounds = std::min(doctor::count_rounds(options_.count), limits::kDoctorNodes - 1);
    for (int64_t round = 0; round < rounds; ++round) {
      const int64_t other = doctor::partner_of(number_, round, options_.count);
      if (other == options_.count) continue;
      if (other < number_) await_measurement(other);
      doctor::PairFacts pair = measure_pair(facts_.nodes.at(static_cast<size_t>(other)));
      pair.from = number_;
      pair.to = other;
      facts_.pairs.push_back(std::move(pair));
      if (Status published = rendezvous_.publish(pair_key(number_, other), "1"); !published)
        return published;
      if (other > number_) await_measurement(other);
    }
    return rendezvous_.publish(key("pairs", number_), encode(facts_.pairs));
  }

  // Collects the measurements of all nodes. Node 0 calls it.
  Result<std::vector<doctor::Finding>> findings() {
    const Duration limit = limits::kDoctorPairTimeout + limits::kDoctorConnectTimeout;
    std::vector<doctor::PairFacts> all;
    for (int64_t i = 0; i < static_cast<int64_t>(facts_.nodes.size()); ++i) {
      const std::optional<std::string> text = rendezvous_.await(key("pairs", i), limit);
      if (!text) continue;  // the node died; the number of pairs shows its missing measurements
      auto pairs = decode_pairs(*text, options_.count);
      if (!pairs) return pairs.error();
      all.insert(all.end(), pairs->begin(), pairs->end());
    }
    facts_.pairs = std::move(all);
    return doctor::run_cross_node_checks(facts_);
  }

  const doctor::NodesFacts& facts() const { return facts_; }
  std::vector<doctor::Finding> attendance() const {
    return {doctor::run_cross_node_checks(facts_).front()};
  }

 private:
  // Waits until `other` has measured us, so that two nodes never measure one at once. The limit
  // keeps a dead node from holding up the rest.
  void await_measurement(int64_t other) {
    (void)rendezvous_.await(pair_key(other, number_), limits::kDoctorPairTimeout);
  }

  DoctorRendezvous& rendezvous_;
  const DoctorNodesOptions options_;
  const int64_t number_;
  doctor::NodesFacts facts_;
};

// The node that serves the store ends last: the others still read the result there.
void send_bye(DoctorRendezvous& rendezvous, int64_t count) {
  (void)rendezvous.publish(key("bye", rendezvous.number()), "1");
  if (!rendezvous.is_host()) return;
  const Instant until = boot_now() + limits::kDoctorPairTimeout;
  for (int64_t i = 0; i < count && boot_now() < until; ++i) {
    (void)rendezvous.await(key("bye", i), until - boot_now());
  }
}

// Blocks until all pairs are measured. Node 0, which joined first, prints the findings; the others
// print its name. True: no node has a problem that makes jobs fail.
Result<bool> run_doctors(const Endpoint& endpoint, const DoctorNodesOptions& options,
                         FindingsFormat format) {
  const std::string secret = random_secret();
  auto responder = PairResponder::start(static_cast<uint16_t>(options.port), secret);
  if (!responder) return responder.error();
  auto rendezvous = DoctorRendezvous::join(endpoint, options.count, seconds(options.wait_s));
  if (!rendezvous) return rendezvous.error();
  Doctor doctor(**rendezvous, options);
  Result<bool> all_came = doctor.exchange_cards((*responder)->port(), secret);
  if (!all_came) return all_came.error();
  if (!*all_came) {
    print_findings(doctor.attendance(), format);
    return false;
  }
  if (Status measured = doctor.measure_all(); !measured) return measured.error();
  if ((*rendezvous)->number() == 0) {
    auto findings = doctor.findings();
    if (!findings) return findings.error();
    print_findings(*findings, format);
    const bool was_well = doctor::is_well(*findings);
    const Status published = (*rendezvous)->publish("end", was_well ? "well" : "not well");
    if (!published) return published.error();
    send_bye(**rendezvous, options.count);
    return was_well;
  }
  const Duration limit = 2 * limits::kDoctorPairTimeout * options.count;
  const std::optional<std::string> end = (*rendezvous)->await("end", limit);
  send_bye(**rendezvous, options.count);
  const std::string& first = doctor.facts().nodes.front().name;
  if (!end) return Error{ErrorKind::System, first + ", which came first, has not reported the end"};
  if (format != FindingsFormat::Json)
    print("the findings stand at " + first + ", which came first\n");
  return *end == "well";
}

}  // namespace

Result<bool> run_doctor(const DoctorOptions& options) {
  const FindingsFormat format = options.is_json      ? FindingsFormat::Json
                                : options.is_verbose ? FindingsFormat::Verbose
                                                     : FindingsFormat::Short;
  doctor::ProbeRequest question;
  question.nproc = options.nproc;
  if (!options.endpoint.empty()) {
    const Result<Endpoint> endpoint = parse_endpoint(options.endpoint, kRendezvousPort);
    if (!endpoint) return endpoint.error();
    question.endpoint = *endpoint;
  }
  if (options.nodes.count > 0) {
    if (question.endpoint) return run_doctors(*question.endpoint, options.nodes, format);
    return Error{ErrorKind::Usage, "--nnodes needs --endpoint HOST:PORT, where the nodes meet"};
  }
  if (!options.snapshot_dir.empty()) question.snapshot_dir = options.snapshot_dir;
  const std::vector<doctor::Finding> findings = doctor::run_checks(doctor::probe(question));
  print_findings(findings, format);
  return doctor::is_well(findings);
}

}  // namespace cpprun
