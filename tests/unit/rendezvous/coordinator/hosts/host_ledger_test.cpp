// The faults of hosts: what counts, what excludes a host, and what outlives a coordinator.
#include "rendezvous/coordinator/hosts/host_ledger.hpp"

#include <gtest/gtest.h>

#include "common/limits/rendezvous.hpp"

namespace cpprun {
namespace {

RootCause failure_on(const std::string& host, int exit_code = 1) {
  RootCause cause;
  cause.node = host;
  cause.end.rank = Rank(3);
  cause.end.exit_code = exit_code;
  cause.end.started_at = Instant::from_nanoseconds(1);
  cause.end.ended_at = cause.end.started_at + std::chrono::hours(1);
  return cause;
}

TEST(HostLedger, TheRootCauseOfARoundCountsForItsHost) {
  HostLedger ledger(2);
  const RootCause cause = failure_on("a");
  EXPECT_TRUE(ledger.end_round(&cause, 2).excluded.empty());
  EXPECT_EQ(ledger.find("a")->failures, 1);
  EXPECT_EQ(ledger.find("b"), nullptr);
  const HostLedger::RoundResult second = ledger.end_round(&cause, 2);
  EXPECT_EQ(second.excluded, std::vector<std::string>{"a"});
  EXPECT_TRUE(second.is_cause_excluded);
  EXPECT_TRUE(ledger.is_excluded("a"));
  EXPECT_NE(ledger.find("a")->reason.find("2 failures"), std::string::npos);
}

TEST(HostLedger, HangsAndFailedStartsHaveCountsOfTheirOwn) {
  HostLedger ledger(0);
  RootCause hang = failure_on("a");
  hang.end.hang = "in a collective";
  ledger.end_round(&hang, 2);
  RootCause start = failure_on("a");
  start.why = "a worker could not be started on a";
  ledger.end_round(&start, 2);
  EXPECT_EQ(faults_text(*ledger.find("a")), "1 failed start, 1 hang");
  EXPECT_FALSE(ledger.is_excluded("a")) << "without --exclude-after no fault excludes a host";
}

TEST(HostLedger, AFatalStartExcludesAtOnce) {
  HostLedger ledger(5);
  ledger.note_fatal_start("b", "no such program");
  const HostLedger::RoundResult result = ledger.end_round(nullptr, 3);
  EXPECT_EQ(result.excluded, std::vector<std::string>{"b"});
  EXPECT_EQ(result.fatal_start, "no such program");
}

// Its agent may report the same failure to the next coordinator.
TEST(HostLedger, AHostThatIsExcludedIsBlamedForNothingMore) {
  HostLedger ledger(1);
  const RootCause cause = failure_on("a");
  EXPECT_TRUE(ledger.end_round(&cause, 2).is_cause_excluded);
  EXPECT_TRUE(ledger.end_round(&cause, 2).excluded.empty());
  EXPECT_EQ(ledger.find("a")->failures, 1);
}

TEST(HostLedger, LossesOfMostNodesAreNoFaultOfTheirHosts) {
  HostLedger ledger(1);
  ledger.note_loss("a", "silent");
  ledger.note_loss("b", "silent");
  EXPECT_TRUE(ledger.end_round(nullptr, 3).excluded.empty());
  ledger.note_loss("a", "silent");
  EXPECT_EQ(ledger.end_round(nullptr, 3).excluded, std::vector<std::string>{"a"});
}

TEST(HostLedger, OneRoundCountsOnceForAHost) {
  HostLedger ledger(2);
  const RootCause cause = failure_on("a");
  ledger.note_loss("a", "the agent died");
  EXPECT_TRUE(ledger.end_round(&cause, 2).excluded.empty());
  EXPECT_EQ(ledger.find("a")->faults(), 1);
}

TEST(HostLedger, AReadmittedHostBeginsAnew) {
  HostLedger ledger(1);
  EXPECT_TRUE(ledger.exclude("a", "by an operator"));
  EXPECT_FALSE(ledger.exclude("a", "again"));
  EXPECT_TRUE(ledger.readmit("a"));
  EXPECT_FALSE(ledger.readmit("a"));
  EXPECT_EQ(ledger.find("a"), nullptr);
}

TEST(HostLedger, TheNewestReportIsTakenOver) {
  HostLedger first(1);
  EXPECT_FALSE(HostLedger(0).is_shared());
  first.exclude("a", "bad memory");
  const control::HostRecords older = first.to_report();
  first.readmit("a");
  HostLedger next(1);
  EXPECT_TRUE(next.learn(first.to_report()));
  EXPECT_FALSE(next.learn(older)) << "a report that is older than what is known";
  EXPECT_FALSE(next.is_excluded("a"));
}

TEST(HostLedger, ReportsOutOfRangeAreIgnored) {
  HostLedger ledger(1);
  control::HostRecord record;
  record.host = "a";
  record.failures = -1;
  EXPECT_FALSE(ledger.learn({7, {record}}));
  record.failures = 1;
  record.host = std::string(limits::kHostNameBytes + 1, 'x');
  EXPECT_FALSE(ledger.learn({7, {record}}));
  record.host = "a";
  EXPECT_FALSE(ledger.learn({7, std::vector(limits::kHostRecords + 1, record)}));
  EXPECT_FALSE(ledger.learn({INT64_MAX, {record}}));
  EXPECT_TRUE(ledger.learn({7, {record}}));
}

TEST(HostLedger, TheHostWithTheFewestFaultsMakesRoom) {
  HostLedger ledger(3);
  for (size_t i = 0; i < limits::kHostRecords; ++i) {
    ledger.exclude("x" + std::to_string(i), "bad");
  }
  EXPECT_FALSE(ledger.count("y", HostFault::Loss, "gone")) << "all are excluded";
  EXPECT_EQ(ledger.find("y"), nullptr);
  ledger.readmit("x0");
  ledger.count("y", HostFault::Loss, "gone");
  ledger.count("z", HostFault::Loss, "gone");
  EXPECT_EQ(ledger.find("y"), nullptr);
  EXPECT_EQ(ledger.find("z")->losses, 1);
  EXPECT_EQ(ledger.all().size(), limits::kHostRecords);
}

}  // namespace
}  // namespace cpprun
