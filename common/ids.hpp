// Strong types for numbers and names that must not be mixed up.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace cpprun {

// `Tag` only makes the types differ.
template <class Tag, class Number = int64_t>
struct Id {
  Number value{};
  constexpr Id() = default;
  explicit constexpr Id(Number v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
};

using Rank = Id<struct RankTag>;            // global rank of a worker in a round
using LocalRank = Id<struct LocalRankTag>;  // rank among the workers of one agent
using RoundNumber = Id<struct RoundTag>;    // only grows within a job; 0 = before the first
using Term = Id<struct TermTag>;            // incarnation of the job's coordinator; only grows
using SessionId = Id<struct SessionTag, uint64_t>;        // one connection at a server
using Incarnation = Id<struct IncarnationTag, uint64_t>;  // public id of one agent process

// The incarnation identifies a node; the name is for people and for stable ranks. A restarted agent
// is another node that may have the same name. The incarnation is public; the key from which it is
// derived is secret (common/proof/node_id.hpp).
struct NodeId {
  std::string name;
  Incarnation incarnation;
  auto operator<=>(const NodeId&) const = default;
};

}  // namespace cpprun
