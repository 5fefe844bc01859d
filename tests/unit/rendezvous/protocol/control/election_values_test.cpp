// The values that etcd stores for a job (R18).
#include "tests/unit/rendezvous/coordinator/support_election.hpp"

namespace cpprun::test {
namespace {

TEST(ElectionValues, JobStateSurvivesEncoding) {
  control::PersistedJobState facts;
  facts.term = Term(7);
  facts.first_term = Term(5);
  facts.round = RoundNumber(3);
  facts.group_size = 4;
  facts.host_rank = 2;
  facts.restart_count = 1;
  facts.hang_restarts = 2;
  facts.admin_restarts = 3;
  facts.wanted_nodes = 5;
  facts.resume = control::SnapshotName{40, std::string(32, 'a')};
  facts.is_resume_fetched = true;
  facts.decided = control::JobResult{false, "rank 1 failed"};
  const std::string value = control::encode_job_state(facts);
  Result<control::PersistedJobState> read = control::decode_job_state(value);
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(control::encode_job_state(*read), value);
  EXPECT_EQ(read->first_term, Term(5));
  EXPECT_EQ(read->host_rank, 2);
  EXPECT_EQ(read->resume->step, 40);
  EXPECT_TRUE(read->is_resume_fetched);
  EXPECT_EQ(read->decided->failure_summary, "rank 1 failed");
}

TEST(ElectionValues, RejectsInvalidValues) {
  control::PersistedJobState facts;
  facts.term = facts.first_term = Term(7);
  const auto is_read = [&](const auto& change) {
    control::PersistedJobState changed = facts;
    change(changed);
    return control::decode_job_state(control::encode_job_state(changed)).ok();
  };
  EXPECT_TRUE(is_read([](control::PersistedJobState&) {}));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.term = Term(0); }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.term = Term(INT64_MAX); }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.first_term = Term(0); }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.first_term = Term(8); }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.round = RoundNumber(-1); }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.group_size = -1; }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.host_rank = 1; }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.restart_count = -1; }));
  EXPECT_FALSE(is_read([](control::PersistedJobState& f) { f.wanted_nodes = -1; }));
  control::Leader leader = place_of(2);
  EXPECT_TRUE(control::decode_leader(control::encode_leader(leader)).ok());
  leader.port = 65536;
  EXPECT_FALSE(control::decode_leader(control::encode_leader(leader)).ok());
  EXPECT_FALSE(control::decode_leader(control::encode_job_state(facts)).ok()) << "another kind";
  EXPECT_FALSE(control::decode_job_state("").ok());
  EXPECT_FALSE(control::decode_job_state(std::string(1 << 20, '\x91')).ok());
}

}  // namespace
}  // namespace cpprun::test
