// Validation of an agent's registration: its snapshots, and the round that it reports to the next
// coordinator (R13). The rest is in coordinator_test.
#include <functional>

#include "common/limits/faults.hpp"
#include "common/limits/snapshots.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

class Register : public JobTest {
 public:
  using Change = std::function<void(control::Register&)>;

  Register() { nodes(2, 3); }

  // An agent with a complete round of another coordinator.
  control::Register remembering() {
    control::Register facts = player("a").facts;
    facts.reported_phase = control::ReportedPhase::Running;
    facts.round = RoundNumber(3);
    facts.term = Term(2);
    facts.snapshots = snapshots({20});
    control::RankAssignment& assignment = facts.assignment.emplace();
    assignment.term = Term(2);
    assignment.round = RoundNumber(3);
    assignment.group_size = 2;
    assignment.world_size = 4;
    assignment.restart_count = assignment.hang_restarts = 1;
    assignment.wanted_nodes = 2;
    assignment.resume = control::ResumePoint{snapshots({20}).front(), "10.0.0.3", 4711};
    assignment.replicas_of = assignment.replicas_at = control::PeerAddress{"10.0.0.3", 4711};
    assignment.host_rank = 0;
    assignment.standby = control::Standby{Incarnation(9), "10.0.0.3", 4711};
    return facts;
  }
  // From a new agent each time.
  void registers(const control::Register& facts) {
    const std::string name = "n" + std::to_string(++registered_);
    connects(name);
    sends_hello(name);
    sends(name, facts);
    newest_ = name;
  }
  void expect_refused(const Change& change) {
    control::Register facts = remembering();
    change(facts);
    registers(facts);
    JobTest::expect_refused(newest_, "make no sense");
  }
  void expect_all_refused(const std::vector<Change>& changes) {
    for (size_t i = 0; i < changes.size(); ++i) {
      SCOPED_TRACE(i);
      expect_refused(changes[i]);
    }
    EXPECT_TRUE(core.jobs().empty());
  }

 private:
  int registered_ = 0;
  std::string newest_;
};

TEST_F(Register, ContinuesAValidRound) {
  registers(remembering());
  ASSERT_EQ(core.jobs().size(), 1U);
  EXPECT_EQ(phase(), Phase::Recovering);
  EXPECT_EQ(job().round(), RoundNumber(3));
  EXPECT_EQ(job().budget().used(), 1);
}

TEST_F(Register, RejectsAnInvalidRound) {
  expect_all_refused({
      [](auto& r) { r.assignment->round = RoundNumber(4); },
      [](auto& r) { r.assignment->round = r.round = RoundNumber(0); },
      [](auto& r) { r.assignment->term = Term(3); },
      [](auto& r) { r.assignment->term = Term(-1); },
      [](auto& r) { r.assignment->group_size = 0; },
      [](auto& r) { r.assignment->group_size = 4; },
      [](auto& r) { r.assignment->group_rank = -1; },
      [](auto& r) { r.assignment->group_rank = 2; },
      [](auto& r) { r.assignment->base_rank = INT64_MIN; },
      [](auto& r) { r.assignment->base_rank = INT64_MAX; },
      [](auto& r) { r.assignment->host_rank = 2; },
      [](auto& r) { r.assignment->restart_count = 4; },
      [](auto& r) { r.assignment->restart_count = -1; },
      [](auto& r) { r.assignment->hang_restarts = 4; },
      [](auto& r) { r.assignment->hang_restarts = -1; },
      [](auto& r) { r.assignment->admin_restarts = -1; },
      [](auto& r) { r.assignment->admin_restarts = INT64_MAX; },
      [](auto& r) { r.assignment->wanted_nodes = 1; },
      [](auto& r) { r.assignment->wanted_nodes = 4; },
  });
}

TEST_F(Register, RejectsInvalidNamesAndPortsOfARound) {
  static const std::string kLong(2000, 'x');
  expect_all_refused({
      [](auto& r) { r.assignment->master_addr = kLong; },
      [](auto& r) { r.assignment->snapshot_secret = kLong; },
      [](auto& r) { r.assignment->job_key = kLong; },
      [](auto& r) { r.assignment->standby->address = kLong; },
      [](auto& r) { r.assignment->standby->port = 65536; },
      [](auto& r) { r.assignment->replicas_of->address = kLong; },
      [](auto& r) { r.assignment->replicas_of->port = -1; },
      [](auto& r) { r.assignment->replicas_at->port = 65536; },
      [](auto& r) { r.assignment->resume->snapshot.step = -1; },
      [](auto& r) { r.assignment->resume->snapshot.id = "../../etc/passwd"; },
  });
}

TEST_F(Register, RejectsInvalidSnapshots) {
  expect_all_refused({
      [](auto& r) { r.snapshots.front().step = -1; },
      [](auto& r) { r.snapshots.front().step = INT64_MAX; },
      [](auto& r) { r.snapshots.front().id.pop_back(); },
      [](auto& r) { r.snapshots.front().id[0] = 'A'; },
      [](auto& r) { r.snapshots.assign(limits::kSnapshotsReported + 1, r.snapshots.front()); },
      [](auto& r) { r.snapshot_port = 65536; },
      [](auto& r) { r.control_port = -1; },
      [](auto& r) { r.fault_counts.resize(limits::kFaultsPerPlan + 1); },
      [](auto& r) { r.clock_domain = std::string(2000, 'x'); },
      [](auto& r) { r.job_spec.startup_failures = -1; },
  });
}

// In a later report it does not reject the agent: its snapshots count as none.
TEST_F(Register, IgnoresInvalidSnapshotsOfLaterReports) {
  nodes(1, 1);
  has("a", {20});
  join("a");
  ASSERT_TRUE(job().newest_snapshot());
  sends("a", control::Snapshots{{{30, "no id"}}, ""});
  EXPECT_FALSE(job().newest_snapshot());
  EXPECT_TRUE(player("a").session) << "it stays";
}

}  // namespace
}  // namespace cpprun::test
