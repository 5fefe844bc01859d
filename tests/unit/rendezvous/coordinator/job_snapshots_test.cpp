// The snapshot that a round resumes from, the nodes that fetch it, and failed fetches.
#include "common/limits/rendezvous.hpp"
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::StopCause;

const control::ResumePoint& resume_of(const control::RankAssignment& assignment) {
  static const control::ResumePoint none{{-1, ""}, "", 0};
  return assignment.resume ? *assignment.resume : none;
}

TEST_F(JobTest, Snapshots_WithoutAFolderNothingIsResumed) {
  a_and_b_run();
  EXPECT_FALSE(assignment("a").resume);
  EXPECT_EQ(assignment("a").snapshot_secret, "");
  EXPECT_NE(status_json(core).find("\"snapshot\": null"), std::string::npos);
}

TEST_F(JobTest, Snapshots_InASharedFolderAreNotFetched) {
  has("a", {30, 20});
  has("b", {30, 20});
  a_and_b_run();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(resume_of(assignment(name)).snapshot.step, 30);
    EXPECT_EQ(resume_of(assignment(name)).source_address, "");
    EXPECT_EQ(assignment(name).snapshot_secret, "") << "no node may fetch";
  }
  EXPECT_EQ(secrets, 1) << "the key of the job";
  EXPECT_NE(status_json(core).find("\"step\": 30"), std::string::npos);
}

TEST_F(JobTest, Snapshots_ANodeWithoutOneFetches) {
  has("a", {30});
  has("b", {});
  a_and_b_run();
  EXPECT_EQ(resume_of(assignment("a")).source_address, "");
  EXPECT_EQ(resume_of(assignment("b")).snapshot.step, 30);
  EXPECT_EQ(resume_of(assignment("b")).source_address, player("a").facts.addresses[0]);
  EXPECT_EQ(resume_of(assignment("b")).source_port, 4711);
  EXPECT_EQ(assignment("a").snapshot_secret, "secret-2");
  EXPECT_EQ(assignment("b").snapshot_secret, "secret-2");
}

TEST_F(JobTest, Snapshots_ANodeWithoutAFolderDoesNotCount) {
  has("a", {30});
  a_and_b_run();
  EXPECT_EQ(resume_of(assignment("a")).snapshot.step, 30);
  EXPECT_FALSE(assignment("b").resume);
}

TEST_F(JobTest, Snapshots_OfTheLastRoundCountForTheNext) {
  has("a", {});
  has("b", {});
  a_and_b_run();
  EXPECT_FALSE(assignment("a").resume);
  sends("a", control::Snapshots{snapshots({10})});
  EXPECT_NE(status_json(core).find("\"step\": 10"), std::string::npos);
  sends_failed("b");
  has("a", {20, 10});
  has("b", {20, 10});
  sends_saved("a");
  sends_saved("b");
  EXPECT_EQ(resume_of(assignment("a")).snapshot.step, 20);
  EXPECT_EQ(resume_of(assignment("b")).snapshot.step, 20);
}

TEST_F(JobTest, Snapshots_ANewNodeFetchesFromTheOthers) {
  nodes(2, 2);
  has("a", {});
  has("b", {});
  a_and_b_run();
  dies("b");
  passes(limits::kDeathGrace);
  has("a", {20});
  sends_saved("a");
  has("c", {});
  join("c");
  EXPECT_EQ(resume_of(assignment("c")).snapshot.step, 20);
  EXPECT_EQ(resume_of(assignment("c")).source_address, player("a").facts.addresses[0]);
}

TEST_F(JobTest, Snapshots_AFailedFetchIsAFailure) {
  job_spec.max_restarts = 0;
  has("a", {30});
  has("b", {});
  a_and_b_run();
  control::Failed failed{round_of("b"), {}, false};
  failed.why = "the snapshot of step 30 could not be fetched from 10.0.0.1:4711: nothing came";
  sends("b", failed);
  expect_stop("a", StopCause::Failure);
  all({"a", "b"}, &JobTest::sends_saved);
  expect_decided("a", false);
  EXPECT_EQ(received<control::JobResult>("a")->failure_summary,
            failed.why + ", reported by b; restarts used: 0 of 0");
}

TEST_F(JobTest, Snapshots_ADamagedOneIsNotChosenAgain) {
  job_spec.max_restarts = 0;
  has("a", {30, 20});
  has("b", {20});
  a_and_b_run();
  EXPECT_EQ(resume_of(assignment("b")).snapshot.step, 30);
  control::Failed failed{round_of("b"), {}, false};
  failed.why = "model.pt has another checksum there";
  failed.damaged_snapshot = snapshots({30})[0].id;
  sends("b", failed);
  sends("b", failed);
  expect_stop("a", StopCause::Snapshot);
  EXPECT_EQ(job().budget().used(), 0) << "it costs nothing";
  all({"a", "b"}, &JobTest::sends_saved);
  EXPECT_EQ(resume_of(assignment("b")).snapshot.step, 20);
  EXPECT_EQ(resume_of(assignment("b")).source_address, "");
  failed.round = round_of("b");
  failed.damaged_snapshot = snapshots({20})[0].id;
  sends("b", failed);  // though it fetched nothing in this round
  all({"a", "b"}, &JobTest::sends_saved);
  expect_decided("a", false);
}

TEST_F(JobTest, Snapshots_AnUnusableOneIsNotChosenAgain) {
  nodes(2, 2);
  has("a", {30, 20});
  has("b", {30, 20});
  a_and_b_run();
  join("c");
  const auto list = snapshots({30, 20});
  sends("a", control::Snapshots{list, list[1].id});
  sends("c", control::Snapshots{list, list[0].id});  // of no node of this round
  sends_failed("b");
  sends_saved("a");
  sends_saved("b");
  EXPECT_EQ(resume_of(assignment("a")).snapshot.step, 30)
      << "only what the round began with counts";
  sends("b", control::Snapshots{list, list[0].id});
  sends_failed("b");
  sends_saved("a");
  sends_saved("b");
  EXPECT_EQ(resume_of(assignment("a")).snapshot.step, 20);
  EXPECT_EQ(resume_of(assignment("b")).snapshot.step, 20);
}

TEST_F(JobTest, Snapshots_RejectsInvalidReports) {
  has("a", {30});
  player("a").facts.snapshots[0].id = "../../etc/passwd";
  join("a");
  expect_refused("a", "make no sense");
  has("b", {30});
  player("b").facts.snapshots[0].step = -1;
  join("b");
  expect_refused("b", "make no sense");
  has("c", {30});
  player("c").facts.snapshot_port = 70000;
  join("c");
  expect_refused("c", "make no sense");
}

TEST_F(JobTest, Snapshots_InvalidLaterReportsCountAsNone) {
  has("a", {30});
  has("b", {30});
  a_and_b_run();
  sends_failed("a");
  sends("a", control::Stopped{RoundNumber(1), 1, {{40, "x"}}, false});
  sends_saved("b");
  EXPECT_EQ(resume_of(assignment("a")).snapshot, snapshots({30})[0]);
  EXPECT_EQ(resume_of(assignment("a")).source_address, player("b").facts.addresses[0]);
}

TEST_F(JobTest, Replicas_AReplacementLearnsTheirHolders) {
  nodes(2, 2);
  for (const char* name : {"a", "b", "c"}) {
    has(name, {});
    player(name).facts.keeps_replicas = true;
  }
  a_and_b_run();
  const auto peer_of = [this](const char* name) {
    return control::PeerAddress{player(name).facts.addresses[0], 4711};
  };
  EXPECT_EQ(assignment("a").replicas_of, peer_of("b"));
  EXPECT_EQ(assignment("b").replicas_of, peer_of("a"));
  EXPECT_FALSE(assignment("a").replicas_at) << "in the first round no node has anything";
  EXPECT_EQ(assignment("a").snapshot_secret, "secret-2");
  EXPECT_EQ(assignment("b").snapshot_secret, "secret-2");
  dies("a");
  passes(limits::kDeathGrace);
  sends_saved("b");
  join("c");
  EXPECT_EQ(assignment("c").group_rank, 0) << "in the place of the one that was lost";
  EXPECT_EQ(assignment("b").group_rank, 1);
  EXPECT_EQ(assignment("c").replicas_at, peer_of("b"));
  EXPECT_FALSE(assignment("b").replicas_at);
  EXPECT_EQ(assignment("b").replicas_of, peer_of("c"));
}

TEST_F(JobTest, Replicas_WithoutTheFlagNoNodeKeepsAny) {
  has("a", {});
  has("b", {});
  a_and_b_run();
  EXPECT_FALSE(assignment("a").replicas_of);
  EXPECT_EQ(assignment("a").snapshot_secret, "");
}

}  // namespace
}  // namespace cpprun::test
