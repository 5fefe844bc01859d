// What the nodes of a job measured between each other, and the findings with a cure each that
// follow from it. The doctors of all nodes fill the facts
// (launcher/cpprunctl/doctor/doctor.cpp). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"
#include "launcher/doctor/checks.hpp"

namespace cpprun::doctor {

struct NodeCard {
  std::string name;     // of the host
  std::string version;  // of cpprunctl
  // Numeric. The node uses the first one towards the endpoint and its peers; it also has the
  // others.
  std::vector<std::string> addresses;
  int64_t port = 0;    // where it serves the other doctors
  std::string secret;  // a doctor must present it to be served
};

// One node's measurements of another. Times are round trips.
struct PairFacts {
  int64_t from = 0;  // node numbers
  int64_t to = 0;
  std::string error;       // why it is unreachable; "" if it was reached
  std::string name_error;  // why its name does not resolve to it; "" if it does
  Duration latency{};      // the minimum of several
  Duration clock_ahead{};  // its clock minus ours
  double bytes_per_s = 0;  // towards it
};

struct NodesFacts {
  int64_t wanted = 0;            // number of nodes
  std::vector<NodeCard> nodes;   // those that joined, by number
  std::vector<PairFacts> pairs;  // those that were measured
  Duration waited{};             // for the nodes that did not join
  // The user's requirements; zero: none.
  double least_bytes_per_s = 0;
  Duration most_latency{};
};

// The partner of node `number` of `count` in a round of the tournament; `count` if it has none. In
// count_rounds(count) rounds each node meets each other node once. Pure.
int64_t partner_of(int64_t number, int64_t round, int64_t count);
int64_t count_rounds(int64_t count);

// One finding per check: nodes, versions, reach, names, clocks, latency, speed.
std::vector<Finding> run_cross_node_checks(const NodesFacts& facts);

}  // namespace cpprun::doctor
