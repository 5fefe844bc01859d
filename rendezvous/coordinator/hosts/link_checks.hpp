// LinkChecks: checks the network of the nodes in pairs before a round (--link-check), so that a
// node with a bad link takes part in none.
//
// Two stages isolate the node. First neighbours exchange data. Then each node of a pair that has
// failed does the same with a node of a pair that has passed: a node that fails twice has a bad
// link. Source: the network check of DLRover, which pairs nodes in two rounds.
//
// A core: no I/O, no clock, no randomness.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/hosts/host_ledger.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class LinkChecks {
 public:
  struct JobView {
    NodeTable& nodes;
    HostLedger& hosts;
    int64_t max_nodes;  // of a round
  };

  // `bytes`: as JobSpec::link_check_bytes.
  explicit LinkChecks(int64_t bytes) : bytes_(bytes) {}

  // Whether the links of all ready nodes are checked. If not, starts what is missing; call again
  // after each result, and at next_deadline(). After the last result the nodes with bad links are
  // no longer ready.
  bool are_done(Instant now, const JobView& job, Effects& effects);
  // A result from `node`.
  void take(const Node& node, const control::LinkResult& result);
  // A round has ended: the next one needs new checks, of all nodes.
  void restart(NodeTable& nodes);
  // Too few nodes are left for a round.
  void cancel();
  // Nodes that have failed are checked again now and then while the job waits for nodes.
  void retry_if_due(Instant now, NodeTable& nodes) {
    if (now >= retry_at_) restart(nodes);
  }

  // The hosts that are excluded for their links since the last call.
  std::vector<std::string> take_excluded() { return std::exchange(excluded_, {}); }

  bool are_running() const { return stage_ != Stage::None; }
  // While the job waits for nodes.
  Instant next_deadline() const { return are_running() ? deadline_ : retry_at_; }

 private:
  enum class Stage { None, Neighbours, Isolation };
  enum class Quality { Unknown, Good, Slow, Failed };
  struct Pair {
    Incarnation from;  // connects
    Incarnation to;
    std::optional<control::LinkResult> result{};
  };
  struct Suspect {
    Quality quality = Quality::Unknown;
    Incarnation partner;  // in the first stage
    std::string why;
  };

  // The last three of an odd number are checked with each other.
  static std::vector<Pair> neighbours_of(const std::vector<Incarnation>& nodes);
  void begin(Instant now, Stage stage, const std::vector<Pair>& pairs, const JobView& job,
             Effects& effects);
  bool are_results_complete(const NodeTable& nodes) const;
  Quality quality_of(const Pair& pair) const;
  std::string why(const Pair& pair, Quality quality, const NodeTable& nodes) const;
  // Returns the pairs of the second stage; none: nothing is left to find out.
  std::vector<Pair> isolate(const NodeTable& nodes, Effects& effects);
  void conclude(const JobView& job, Effects& effects);
  void separate(Node& node, const Suspect& suspect, const JobView& job, Effects& effects);
  void leave_out(Node& node, const std::string& why, const JobView& job, Effects& effects);
  void end(Instant now, const NodeTable& nodes);

  const int64_t bytes_;
  Stage stage_ = Stage::None;
  Instant deadline_ = Instant::never();  // of the stage
  Instant retry_at_ = Instant::never();
  int64_t next_number_ = 1;
  int64_t passes_ = 0;             // before the next round
  std::map<int64_t, Pair> pairs_;  // of the stage, by number
  double median_rate_ = 0;         // of the pairs that passed the first stage; 0: too few
  std::map<Incarnation, Suspect> suspects_;
  std::set<Incarnation> checked_;  // for the next round
  std::set<Incarnation> failed_;   // in their last check
  std::vector<std::string> excluded_;
};

}  // namespace cpprun
