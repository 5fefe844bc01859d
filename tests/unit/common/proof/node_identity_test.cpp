// Node identity (R10): a public id, and the secret key that it is made from.
#include "common/proof/node_id.hpp"

#include <set>

#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;

TEST(NodeId, MatchesTheDocument) {
  constexpr const char* kKey = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(node_id_of(kKey), Incarnation(0x215fe249268682f2));
  EXPECT_EQ(first_connection_of(kKey), 0x79440edcc69f1dcf >> 2);
}

TEST(NodeId, ConnectionNumbersGrowFromTheFirst) {
  std::set<int64_t> all;
  for (int i = 0; i < 100; ++i) {
    const int64_t first = first_connection_of("key " + std::to_string(i));
    EXPECT_GE(first, 0);
    EXPECT_LT(first, int64_t{1} << 62);
    all.insert(first);
  }
  EXPECT_EQ(all.size(), 100U);
}

class NodeIdentity : public JobTest {
 public:
  static constexpr int64_t kBeyond = int64_t{1} << 62;

  NodeIdentity() { begin(node_id_of); }

  void begin(std::function<Incarnation(const std::string&)> ids) {
    std::destroy_at(&core);
    CoordinatorOptions options{
        "head", Term(++epochs_), std::nullopt, limits::kWaitReminderInterval, {}};
    options.node_id_of = std::move(ids);
    std::construct_at(&core, std::move(options));
  }
  void has_key(const std::string& name, const std::string& key) {
    player(name).hello.token = key;
    player(name).hello.node.incarnation = node_id_of(key);
  }
  // An impostor with the id of `name`, and everything else but the key.
  void claims_to_be(const std::string& foreign, const std::string& name,
                    const std::string& key = "") {
    player(foreign).hello = player(name).hello;
    player(foreign).hello.token = key;
    player(foreign).hello.connection = kBeyond;
    player(foreign).facts = player(name).facts;
    connects(foreign);
    sends(foreign, player(foreign).hello);
    sends(foreign, player(foreign).facts);
  }

 private:
  int64_t epochs_ = 7;
};

TEST_F(NodeIdentity, R10_RejectsAnAgentWithoutTheKeyAndKeepsTheNode) {
  has_key("a", "key of a");
  has_key("b", "key of b");
  a_and_b_run();
  player("b").facts.reported_phase = ReportedPhase::Running;
  player("b").facts.round = RoundNumber(1);
  for (const std::string& key : {std::string(), std::string("guessed"), std::string(65, 'x')}) {
    claims_to_be("x", "b", key);
    expect_refused("x", "shows no key");
    EXPECT_FALSE(received<control::RankAssignment>("x"));
  }
  EXPECT_TRUE(player("b").session);
  passes(limits::kNodeLease * 2);
  EXPECT_EQ(phase(), Phase::Running);
  all({"a", "b"}, &JobTest::sends_done);
  expect_decided("b", true);
}

TEST_F(NodeIdentity, R10_ARejectionRevealsNeitherIdNorKey) {
  has_key("a", "key of a");
  join("a");
  claims_to_be("x", "a", "a key that is wrong");
  const std::string id = std::to_string(player("a").hello.node.incarnation.value);
  for (const std::string& text : {received<control::Refused>("x")->why, notes.back().text}) {
    EXPECT_EQ(text.find(id), std::string::npos) << text;
    EXPECT_EQ(text.find("a key that is wrong"), std::string::npos) << text;
  }
}

TEST_F(NodeIdentity, R10_ANodeReplacesItsOwnHalfOpenConnection) {
  has_key("a", "key of a");
  has_key("b", "key of b");
  a_and_b_run();
  player("b again") = player("b");
  returns("b again", ReportedPhase::Running, 1);
  EXPECT_FALSE(player("b").session) << "the half-open connection is reset";
  EXPECT_TRUE(player("b again").session);
  EXPECT_EQ(job().nodes().size(), 2U);
  EXPECT_EQ(phase(), Phase::Running);
}

// A restarted coordinator has no earlier registration to compare with.
TEST_F(NodeIdentity, R10_ARestartedCoordinatorChecksTheKeyToo) {
  has_key("a", "key of a");
  has_key("b", "key of b");
  a_and_b_run();
  begin(node_id_of);
  claims_to_be("x", "b");
  expect_refused("x", "shows no key");
  EXPECT_TRUE(core.jobs().empty());
}

// Among many nodes an attacker may find a key for the id of one of them.
TEST_F(NodeIdentity, R10_AnotherKeyForTheSameIdIsAnotherAgent) {
  begin([](const std::string&) { return Incarnation(1); });
  player("a").hello.token = "key of a";
  player("a").hello.node.incarnation = Incarnation(1);
  join("a");
  claims_to_be("x", "a", "another key");
  expect_refused("x", "another key");
  EXPECT_TRUE(player("a").session);
}

class AdminMacTest : public NodeIdentity {
 public:
  void begin(bool needs_admin_token) {
    std::destroy_at(&core);
    CoordinatorOptions options{
        "head", Term(++restarts_), std::nullopt, limits::kWaitReminderInterval, {}};
    options.needs_admin_token = needs_admin_token;
    std::construct_at(&core, std::move(options));
  }

 private:
  int64_t restarts_ = 7;
};

TEST_F(AdminMacTest, AJobWithATokenNeedsThemAfterACoordinatorRestart) {
  begin(true);
  a_and_b_run();
  EXPECT_TRUE(job().needs_admin_token());
  begin(false);
  for (const char* name : {"a", "b"}) {
    Player& p = player(name);
    p.session.reset();
    p.facts.assignment = assignment(name);
    p.facts.term = p.facts.assignment->term;
    p.facts.has_worker_lease = true;
    returns(name, ReportedPhase::Running, 1);
  }
  EXPECT_TRUE(job().needs_admin_token()) << "though this one has no token";
}

TEST_F(AdminMacTest, AJobWithoutATokenNeedsNone) {
  begin(false);
  a_and_b_run();
  EXPECT_FALSE(job().needs_admin_token());
}

TEST_F(AdminMacTest, AnAgentCommandsOnlyTheJobItRegisteredWith) {
  begin(true);
  connects("a");
  EXPECT_EQ(core.job_of(*player("a").session), nullptr);
  sends_hello("a");
  EXPECT_EQ(core.job_of(*player("a").session), nullptr);
  sends("a", player("a").facts);
  ASSERT_NE(core.job_of(*player("a").session), nullptr);
  EXPECT_EQ(core.job_of(*player("a").session)->run_id(), run_id);
  EXPECT_EQ(core.job_of(SessionId(999)), nullptr);
}

}  // namespace
}  // namespace cpprun::test
