// Checks: what must hold in every run of a cluster, seen from outside (S1 to S5 of the protocol's
// page). A broken one is kept as a sentence.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/effects.hpp"
#include "rendezvous/protocol/control.hpp"

namespace cpprun::test {

class Checks {
 public:
  const std::vector<std::string>& broken() const { return broken_; }
  void require(bool holds, const std::string& what) {
    if (!holds) broken_.push_back(what);
  }

  // The coordinator tells a node its place.
  void on_world(Incarnation node, const control::World& world) {
    std::string where = "round " + std::to_string(world.round.value) + ": ";
    Job& job = jobs_[world.epoch];
    require(world.round >= job.newest, where + "rounds only grow");
    job.newest = world.round;
    auto [it, is_new] = job.rounds.try_emplace(world.round);
    Round& round = it->second;
    if (is_new) {
      require(world.restart_count >= job.budget_used, where + "the budget only grows");
      require(world.restart_count <= job.budget_used + 1, where + "a round costs at most one");
      require(world.restart_count <= world.max_restarts, where + "the budget is overspent");
      job.budget_used = world.restart_count;
      round.first = world;
    }
    const control::World& first = round.first;
    require(first.world_size == world.world_size && first.group_size == world.group_size &&
                first.master_addr == world.master_addr && first.master_port == world.master_port &&
                first.store_port == world.store_port && first.restart_count == world.restart_count,
            where + "two worlds in one round");
    auto [place, is_first] = round.places.try_emplace(node, world.group_rank, world.base_rank);
    require(is_first || place->second == std::pair(world.group_rank, world.base_rank),
            where + "a node's place has changed");
  }

  // Ranks of every round: 0..n-1, each once. Some worlds were sent into broken connections, all
  // were sent.
  void on_round_sent(Epoch epoch) {
    Job& job = jobs_[epoch];
    Round& round = job.rounds[job.newest];
    std::set<int64_t> ranks;
    for (const auto& [node, place] : round.places) ranks.insert(place.first);
    std::string where = "round " + std::to_string(job.newest.value) + ": ";
    require(ranks.size() == round.places.size(), where + "a rank is there twice");
    require(static_cast<int64_t>(ranks.size()) <= round.first.group_size, where + "too many ranks");
    require(ranks.empty() || (*ranks.begin() >= 0 && *ranks.rbegin() < round.first.group_size),
            where + "a rank is out of range");
  }

  void on_finish(Epoch epoch, const agent::Finish& finish) {
    if (finish.how == agent::Finish::How::Success) ++jobs_[epoch].successes;
    if (finish.how == agent::Finish::How::Failure) ++jobs_[epoch].failures;
    Job& job = jobs_[epoch];
    require(job.successes == 0 || job.failures == 0, "two nodes were told opposite outcomes");
  }

 private:
  struct Round {
    control::World first;
    std::map<Incarnation, std::pair<int64_t, int64_t>> places;
  };
  struct Job {
    RoundNumber newest;
    int64_t budget_used = 0;
    int64_t successes = 0;
    int64_t failures = 0;
    std::map<RoundNumber, Round> rounds;
  };

  std::map<Epoch, Job> jobs_;
  std::vector<std::string> broken_;
};

}  // namespace cpprun::test
