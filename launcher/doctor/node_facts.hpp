// What the nodes of a job found out about each other. Plain data: the doctors of all nodes fill it
// (launcher/cpprunctl/doctor/doctor_nodes.cpp), run_cross_node_checks() reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun::doctor {

struct NodeCard {
  std::string name;     // of the host
  std::string version;  // of cpprunctl
  // Numeric. By the first it reaches the endpoint, and is reached; the others are its too.
  std::vector<std::string> addresses;
  int64_t port = 0;    // where it answers the others
  std::string secret;  // who shows it is answered
};

// One node's look at another. Times are of one way there and back.
struct PairFacts {
  int64_t from = 0;  // numbers of the nodes
  int64_t to = 0;
  std::string error;       // why it can't be reached; "" if it was
  std::string name_error;  // why its name does not lead to it; "" if it does
  Duration latency{};      // the least of some
  Duration clock_ahead{};  // how far its clock is ahead of ours
  double bytes_per_s = 0;  // to it
};

struct NodesFacts {
  int64_t wanted = 0;            // nodes
  std::vector<NodeCard> nodes;   // those that came, by number
  std::vector<PairFacts> pairs;  // those that were looked at
  Duration waited{};             // for who did not come
  // What people want; zero: nothing in particular.
  double least_bytes_per_s = 0;
  Duration most_latency{};
};

// With whom node `number` of `count` has to do in a round of a tournament; count: with nobody. In
// count_rounds(count) rounds each meets each other once. Pure.
int64_t partner_of(int64_t number, int64_t round, int64_t count);
int64_t count_rounds(int64_t count);

}  // namespace cpprun::doctor
