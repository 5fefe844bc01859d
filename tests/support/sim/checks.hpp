// Checks: what must hold in every run, judged from outside with true time and full sight. The cores
// know nothing of it. A broken one is kept as a sentence.
//
// Names S1 to S5 are those of the properties in docs/simulation.md, R1 to R11 the rules of
// docs/protocol.md.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/effects.hpp"
#include "common/ids.hpp"
#include "rendezvous/core/membership.hpp"
#include "rendezvous/protocol/control.hpp"

namespace cpprun::sim {

// A round of one job under one coordinator.
struct RoundName {
  Epoch epoch;
  RoundNumber round;
  auto operator<=>(const RoundName&) const = default;
};

// Nothing was formed or granted yet: what agents bring is all there is.
bool has_no_memory(const Membership& job);

class Checks {
 public:
  const std::vector<std::string>& broken() const { return broken_; }
  void require(bool holds, const std::string& what) {
    if (!holds && broken_.size() < kKept) broken_.push_back(what);
  }

  // ---- workers, as they truly are
  void on_workers_live(const RoundName& round, int64_t count);
  void on_workers_gone(const RoundName& round, int64_t count);
  // A worker failed of itself: nobody had asked it to stop.
  void on_true_failure(const RoundName& round) { failing_rounds_.insert(round); }
  // The agent has learned of such an end while its round ran, and must tell.
  void on_known_failure(Incarnation node, const RoundName& round) {
    unreported_.emplace(node, round.round);
  }
  int64_t live_workers_of(Epoch epoch, RoundNumber round) const;  // in whichever epoch of the job
  int64_t live_workers() const { return live_in_all_; }

  // ---- an agent
  void on_start(Incarnation node, const control::World& world, Epoch welcomed);
  void on_finish(Epoch epoch, bool has_workers, const agent::Finish& finish);

  // It leads the job from now on; the newest coordinator that welcomed it had this epoch.
  void on_take_over(Incarnation node, Epoch welcomed);

  // ---- a coordinator; all that one call of it sent
  void on_sent(const Membership* job, Incarnation to, const control::CoordinatorMessage& message);
  void after_call(const Membership* job);
  // A coordinator goes on from a round that another one has formed: one job in two epochs.
  void on_continued(const Membership& by, Epoch formed_in);
  // What an agent says, when the coordinator hears it.
  void on_heard(Epoch epoch, Incarnation from, const control::AgentMessage& message);

  int64_t rounds_formed() const { return rounds_formed_; }

 private:
  static constexpr size_t kKept = 20;

  struct Round {
    control::World first;
    std::map<Incarnation, control::World> worlds;
    bool was_stopped_by_failure = false;
  };
  struct Job {
    RoundName newest;
    int64_t budget_used = 0;
    std::map<RoundName, Round> rounds;
    std::optional<control::Decided> decided;
    Epoch decided_in;
    std::set<Incarnation> told;  // the outcome
    bool is_success_told = false;
    bool is_failure_told = false;
    std::set<Incarnation> must_acknowledge;  // before the first bye
    Epoch unusable_in;  // whose coordinator heard that a node of the newest round is unusable
  };

  // The first epoch of the job that goes on in this one.
  Epoch root(Epoch epoch) const;
  Job& job_of(Epoch epoch) { return jobs_[root(epoch)]; }
  bool are_one_job(const RoundName& a, const RoundName& b) const {
    return root(a.epoch) == root(b.epoch);
  }
  void on_world(Job& job, Incarnation to, const control::World& world);
  void on_new_round(Job& job, const control::World& world);
  void on_decided(Job& job, const Membership& membership, Incarnation to,
                  const control::Decided& decided);
  void on_bye(Job& job, const Membership& membership, Incarnation to);
  void judge_unusable(const Membership& membership);
  void judge_ranks(const Round& round, const std::string& where);

  std::map<Epoch, Epoch> continued_;  // epoch that goes on, and the one that it goes on from
  std::set<Epoch> begun_anew_;        // after an outcome that nobody left knows
  std::map<Epoch, Job> jobs_;         // by the job's first epoch
  std::map<RoundName, int64_t> live_;
  int64_t live_in_all_ = 0;
  std::set<RoundName> failing_rounds_;        // of all jobs
  std::map<Incarnation, RoundName> started_;  // the newest round of each node
  std::set<Incarnation> acked_;
  bool has_unusable_node_ = false;  // SIGKILL did not end a worker on some node, and it left
  // Workers of each, as it registered: a round may be told when its members are gone already (R18).
  std::map<Incarnation, int64_t> nproc_;
  std::set<std::pair<Incarnation, RoundNumber>> unreported_;  // failures that agents know of
  std::set<RoundName> formed_now_;                            // in the call under way
  int64_t rounds_formed_ = 0;
  std::vector<std::string> broken_;
};

}  // namespace cpprun::sim
