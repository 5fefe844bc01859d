// Compares torch's flight-recorder dumps of a node's workers, to find the rank that has issued
// another collective than the others, or fewer.
//
// Pure. The dump is text from a worker (cpprun_worker, _agent.py): a line for each collective, with
// tabs between group, sequence number, operation, sizes of the inputs, and "over" or "open".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"

namespace cpprun::agent {

// One collective that a rank has issued; operations between two ranks are not compared.
struct TracedCollective {
  std::string group;  // "0 (default_pg)"
  int64_t sequence = 0;
  std::string operation;  // "gloo:all_reduce"
  std::string sizes;      // of its inputs: "[[3]]"
  bool is_over = false;

  bool operator==(const TracedCollective&) const = default;
};

struct RankTrace {
  Rank rank;
  std::vector<TracedCollective> collectives{};  // in the order of the dump
};

struct TraceFinding {
  std::string text;           // a sentence for people; empty: no dumps differ
  std::optional<Rank> odd{};  // the only rank that differs
};

// Leaves out what is no such line. At most limits::kTraceEntries collectives, the newest.
std::vector<TracedCollective> parse_trace(std::string_view dump);

// The first difference of the first group that has one. Ranks without dumps are not judged.
TraceFinding compare_traces(const std::vector<RankTrace>& ranks);

}  // namespace cpprun::agent
