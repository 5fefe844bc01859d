// Admin commands: their effects in the coordinator, and rejections.
#include "common/limits/rendezvous.hpp"
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::AdminCommandKind;
using control::ReportedPhase;
using control::StopCause;

class AdminCommandsTest : public JobTest {
 public:
  // `name` sends the command; returns the answer to `name`.
  void orders(const std::string& name, control::AdminCommand order) {
    order.id = ++ids_;
    sends(name, order);
  }
  void orders_restart(const std::string& name) { orders(name, {}); }
  void orders_stop(const std::string& name, bool is_resumable) {
    orders(name, {0, AdminCommandKind::Stop, is_resumable});
  }
  void orders_drain(const std::string& name, const std::string& node) {
    orders(name, {0, AdminCommandKind::Drain, false, node});
  }
  void orders_scale(const std::string& name, int64_t nodes) {
    orders(name, {0, AdminCommandKind::Scale, false, "", nodes});
  }
  void expect_answer(const std::string& name, bool is_done, const std::string& words) {
    const auto* answer = received<control::AdminReply>(name);
    ASSERT_TRUE(answer) << name;
    EXPECT_EQ(answer->id, ids_);
    EXPECT_EQ(answer->is_done, is_done) << answer->text;
    EXPECT_NE(answer->text.find(words), std::string::npos) << answer->text;
  }
  void a_b_and_c_run() {
    nodes(1, 3);
    join("c");
    a_and_b_run();
    sends_started("c");
  }

 private:
  int64_t ids_ = 0;
};

TEST_F(AdminCommandsTest, ARestartUsesNoBudgetAndIsCounted) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  orders_restart("b");
  expect_answer("b", true, "2 nodes are restarted");
  expect_stop("a", StopCause::Operator);
  EXPECT_NE(received<control::Stop>("a")->why.find("an operator on b"), std::string::npos);
  sends_failed("a", 1);  // its peers left sooner
  all({"a", "b"}, &JobTest::sends_saved);
  expect_assignment("a", 2, 0, 4);
  EXPECT_EQ(assignment("a").restart_count, 0);
  EXPECT_EQ(assignment("b").admin_restarts, 1);
  EXPECT_NE(status_json(core).find("\"admin_restarts\": 1"), std::string::npos);
  sends_failed("a", 1);
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("a", false);
}

TEST_F(AdminCommandsTest, ARestartNeedsARound) {
  join("a");
  orders_restart("a");
  expect_answer("a", false, "1 of at least 2 nodes joined: a; 1 missing");
  join("b");
  orders_restart("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(round_of("a"), RoundNumber(2));
  all({"a", "b"}, &JobTest::sends_done);
  orders_restart("a");
  expect_answer("a", false, "the job is over");
}

TEST_F(AdminCommandsTest, ARestartWhileTheRoundStops) {
  a_and_b_run();
  sends_failed("a");
  orders_restart("b");
  expect_answer("b", false, "the last round is stopping");
  EXPECT_EQ(job().admin_restarts(), 0);
}

TEST_F(AdminCommandsTest, ARestartWaitsForALostNodesLease) {
  a_and_b_run();
  orders_restart("a");
  sends_saved("a");
  dies("b");
  passes(limits::kDeathGrace);
  EXPECT_EQ(received<control::JobResult>("a"), nullptr);
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  join("c");
  expect_assignment("a", 2, 0, 4);
}

TEST_F(AdminCommandsTest, ANodeThatDrainsDuringARestartEndsASavedJob) {
  a_and_b_run();
  orders_restart("a");
  drains("b");
  leaves_saved("b");
  sends_saved("a");
  expect_decided("a", false);
  EXPECT_TRUE(received<control::JobResult>("a")->is_resumable);
  EXPECT_EQ(received<control::JobResult>("a")->failure_summary, "b was asked to stop");
}

TEST_F(AdminCommandsTest, AStopReachesAllNodesAndReturningOnes) {
  nodes(1, 3);
  join("c");
  a_and_b_run();
  is_cut_off("c");
  orders_stop("a", true);
  expect_answer("a", true, "asked 2 nodes to save");
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(received<control::ShutdownRequest>(name)) << name;
    EXPECT_TRUE(received<control::ShutdownRequest>(name)->saves);
    drains(name);
    leaves_saved(name);
  }
  returns("c", ReportedPhase::Running, 1);
  ASSERT_TRUE(received<control::ShutdownRequest>("c"));
  EXPECT_EQ(round_of("c"), RoundNumber(1));
  leaves("c");
  EXPECT_TRUE(job().is_over());
}

TEST_F(AdminCommandsTest, NoRoundFormsAfterAStop) {
  nodes(1, 2);
  job_spec.lease = 5s;
  a_and_b_run();
  is_cut_off("b");
  orders_stop("a", false);
  EXPECT_FALSE(received<control::ShutdownRequest>("a")->saves);
  leaves("a");
  returns("b", ReportedPhase::Stopped, 1);
  EXPECT_EQ(round_of("b"), RoundNumber(1));
  passes(1min);
  EXPECT_EQ(round_of("b"), RoundNumber(1));
  leaves("b");
  player("b").facts.term = job().term();
  returns("b", ReportedPhase::Stopped, 1);
  EXPECT_EQ(round_of("b"), RoundNumber(1)) << "a job that was stopped is remembered";
  join("new");
  expect_no_assignment("new");
}

TEST_F(AdminCommandsTest, ADrainNamesItsNode) {
  a_b_and_c_run();
  orders_drain("a", "1");
  expect_answer("a", true, "asked b to save");
  EXPECT_TRUE(received<control::ShutdownRequest>("b")->saves);
  EXPECT_EQ(received<control::ShutdownRequest>("b")->others_continue, job_spec.min_nodes <= 2);
  EXPECT_FALSE(received<control::ShutdownRequest>("a"));
  EXPECT_EQ(phase(), Phase::Running) << "the node itself reports that it drains";
  drains("b");
  orders_drain("a", "b");
  expect_answer("a", false, "b is leaving already");
  orders_drain("a", "d");
  expect_answer("a", false, "there is: c (2), a (0), b (1)");
  is_cut_off("c");
  orders_drain("a", "c");
  expect_answer("a", false, "no connection");
}

TEST_F(AdminCommandsTest, APodIsNamedWithoutItsMachine) {
  player("b").hello.node.name = "train-1@machine-7";
  a_and_b_run();
  orders_drain("a", "train-1");
  expect_answer("a", true, "asked train-1@machine-7 to save");
  orders_drain("a", "train");
  expect_answer("a", false, "no node of the job is called 'train'");
}

TEST_F(AdminCommandsTest, AnAmbiguousNodeNameIsRejected) {
  for (const char* name : {"a", "b"}) player(name).hello.node.name = "same";
  a_and_b_run();
  orders_drain("a", "same");
  expect_answer("a", false, "by its group rank: same (0), same (1)");
  orders_drain("a", "0");
  expect_answer("a", true, "fewer nodes than --nnodes needs");
}

TEST_F(AdminCommandsTest, ScalingDownRemovesTheLastNodes) {
  a_b_and_c_run();
  orders_scale("c", 2);
  expect_answer("c", true, "become spares");
  expect_stop("a", StopCause::Scale);
  all({"a", "b", "c"}, &JobTest::sends_saved);
  expect_assignment("a", 2, 0, 4);
  EXPECT_EQ(round_of("c"), RoundNumber(1));
  EXPECT_TRUE(received<control::Wait>("c")->is_spare);
  EXPECT_NE(received<control::Wait>("c")->why.find("as many as an operator wants"),
            std::string::npos);
  passes(2 * limits::kScaleUpInterval);
  EXPECT_EQ(phase(), Phase::Running) << "a spare is no growth";
  EXPECT_EQ(round_of("a"), RoundNumber(2));
  EXPECT_NE(status_json(core).find("\"wanted_nodes\": 2"), std::string::npos);
}

TEST_F(AdminCommandsTest, ASpareReplacesALostNode) {
  a_b_and_c_run();
  orders_scale("a", 2);
  all({"a", "b", "c"}, &JobTest::sends_saved);
  all({"a", "b"}, &JobTest::sends_started);
  leaves("b");
  sends_stopped("a");
  expect_assignment("c", 3, 1, 4);
}

TEST_F(AdminCommandsTest, ScalingUpUsesSparesImmediately) {
  a_b_and_c_run();
  orders_scale("a", 1);
  all({"a", "b", "c"}, &JobTest::sends_saved);
  sends_started("a");
  orders_scale("a", 3);
  expect_answer("a", true, "grows now");
  expect_stop("a", StopCause::Scale);
  sends_saved("a");
  expect_assignment("c", 3, 2, 6);
}

TEST_F(AdminCommandsTest, ScalingUpWithoutSparesWaitsForThem) {
  nodes(1, 3);
  a_and_b_run();
  orders_scale("a", 2);
  expect_answer("a", true, "as it has");
  join("c");
  EXPECT_EQ(phase(), Phase::Running) << "more than wanted";
  orders_scale("a", 3);
  expect_stop("a", StopCause::Scale);
}

TEST_F(AdminCommandsTest, RejectsAnImpossibleNodeCount) {
  a_b_and_c_run();
  for (int64_t wrong : {int64_t{0}, int64_t{4}, INT64_MIN, INT64_MAX}) {
    orders_scale("a", wrong);
    expect_answer("a", false, "is not within --nnodes=1:3");
  }
  sends_done("a");
  orders_scale("b", 1);
  expect_answer("b", false, "has finished its part");
}

TEST_F(AdminCommandsTest, AJobOfFixedSizeCannotBeScaled) {
  a_and_b_run();
  orders_scale("a", 2);
  expect_answer("a", false, "only --nnodes=MIN:MAX");
}

TEST_F(AdminCommandsTest, RemoteCommandsNameTheirJob) {
  a_and_b_run();
  Effects effects;
  EXPECT_NE(
      core.on_admin_command(now, "other", {}, "10.0.0.7", effects).text.find("no job 'other'"),
      std::string::npos);
  const control::AdminReply answer = core.on_admin_command(now, "", {}, "10.0.0.7", effects);
  EXPECT_TRUE(answer.is_done) << answer.text;
  call([&](Effects& all) { all = effects; });
  expect_stop("a", StopCause::Operator);
}

}  // namespace
}  // namespace cpprun::test
