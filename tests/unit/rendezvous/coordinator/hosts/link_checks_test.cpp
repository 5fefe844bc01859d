// LinkChecks: which nodes take part in no round because of their network link (--link-check).
#include "rendezvous/coordinator/hosts/link_checks.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "common/limits/rendezvous.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::CheckLink;
using control::LinkResult;

constexpr int64_t kBytes = 16 << 20;

class JobLinkChecksTest : public JobTest {
 public:
  JobLinkChecksTest() {
    job_spec.link_check_bytes = kBytes;
    nodes(2, 4);
  }

  void joins(const std::string& name) {
    control::Register& facts = player(name).facts;
    facts.link_port = 5000 + ++ports_;
    facts.link_secret = "secret of " + name;
    names_[facts.link_port] = name;
    join(name);
  }
  void join_all(const std::vector<std::string>& names) {
    for (const std::string& name : names) joins(name);
    if (!is_checking(names.front())) passes(limits::kLastCall);
  }
  void begin_job(const std::string& name) {
    run_id = name;
    players.clear();
    answered_.clear();
  }
  // The node has been asked to check its link since forget().
  bool is_checking(const std::string& name) { return received<CheckLink>(name) != nullptr; }
  // Answers the requests that the nodes have: `why` names the failure of the link, "": it is good.
  void links_answer(const std::function<std::string(std::string, std::string)>& why,
                    Duration took = std::chrono::milliseconds(300)) {
    std::vector<std::pair<std::string, CheckLink>> asked;
    for (auto& [name, each] : players) {
      for (const auto& message : each.received) {
        const auto* check = std::get_if<CheckLink>(&message);
        const bool is_here = each.session.has_value();
        if (check != nullptr && is_here && answered_.insert(check->number).second) {
          asked.emplace_back(name, *check);
        }
      }
    }
    for (const auto& [name, check] : asked) {
      const std::string peer = names_.at(check.peer.port);
      EXPECT_EQ(check.secret, "secret of " + peer);
      sends(name, LinkResult{check.number, why(name, peer), 2 * check.bytes, took});
    }
  }
  void all_links_are_good() {
    links_answer([](const auto&, const auto&) { return ""; });
  }
  // Of these nodes.
  void links_fail(const std::vector<std::string>& bad) {
    links_answer([&](const std::string& from, const std::string& to) {
      const bool is_bad = std::ranges::count(bad, from) + std::ranges::count(bad, to) > 0;
      return is_bad ? "nothing came for 10 s" : "";
    });
  }
  void only_c_and_d_fail_with_each_other() {
    links_answer([](const std::string& from, const std::string& to) {
      const bool is_it = (from == "c" && to == "d") || (from == "d" && to == "c");
      return is_it ? "connection refused" : "";
    });
  }
  int64_t failed_checks(const std::string& name) {
    const control::HostRecord* record = job().hosts().find(name);
    return record == nullptr ? 0 : record->failed_checks;
  }

 private:
  int64_t ports_ = 0;
  std::map<int64_t, std::string> names_;
  std::set<int64_t> answered_;
};

TEST_F(JobLinkChecksTest, ARoundFormsWhenAllPairsHavePassed) {
  join_all({"a", "b", "c", "d"});
  expect_no_assignment("a");
  ASSERT_TRUE(is_checking("a"));
  EXPECT_EQ(received<CheckLink>("a")->bytes, kBytes);
  ASSERT_TRUE(is_checking("c"));
  all_links_are_good();
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(round_of(name), RoundNumber(1)) << name;
}

TEST_F(JobLinkChecksTest, ABadLinkIsFoundInTwoStages) {
  join_all({"a", "b", "c", "d"});
  links_fail({"d"});
  expect_no_assignment("a");  // c or d
  links_fail({"d"});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(round_of(name), RoundNumber(1)) << name;
  expect_no_assignment("d");
  ASSERT_TRUE(received<control::Wait>("d"));
  EXPECT_NE(received<control::Wait>("d")->why.find("the network link of d has failed"),
            std::string::npos);
  EXPECT_EQ(failed_checks("d"), 1);
  EXPECT_EQ(failed_checks("c"), 0);
}

TEST_F(JobLinkChecksTest, EachOfThreeNodesCanBeTheBadOne) {
  for (const std::string bad : {"a", "b", "c"}) {
    begin_job("job with a bad " + bad);
    join_all({"a", "b", "c"});
    links_fail({bad});
    links_fail({bad});
    for (const std::string name : {"a", "b", "c"}) {
      EXPECT_EQ(round_of(name), RoundNumber(name == bad ? 0 : 1)) << name << ", bad: " << bad;
    }
  }
}

TEST_F(JobLinkChecksTest, TheNextRoundChecksAllAgain) {
  join_all({"a", "b", "c"});
  links_fail({"c"});
  links_fail({"c"});
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  all({"a", "b"}, &JobTest::sends_started);
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  all_links_are_good();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(round_of(name), RoundNumber(2)) << name;
}

TEST_F(JobLinkChecksTest, WithoutAThirdNodeTheRoundFormsWithAWarning) {
  nodes(2, 2);
  join_all({"a", "b"});
  links_fail({"b"});
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  EXPECT_EQ(round_of("b"), RoundNumber(1));
  EXPECT_TRUE(has_note("link_check"));
}

TEST_F(JobLinkChecksTest, ALinkBetweenTwoGoodNodesLeavesNoneOut) {
  join_all({"a", "b", "c", "d"});
  only_c_and_d_fail_with_each_other();
  only_c_and_d_fail_with_each_other();
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(round_of(name), RoundNumber(1)) << name;
  EXPECT_TRUE(has_note("link_check"));
}

TEST_F(JobLinkChecksTest, WithASpareOneOfTwoThatDoNotReachEachOtherIsLeftOut) {
  nodes(2, 3);
  join_all({"a", "b", "c", "d"});
  only_c_and_d_fail_with_each_other();
  only_c_and_d_fail_with_each_other();
  EXPECT_EQ(job().assignments().size(), 3U);
  EXPECT_NE(round_of("c") == RoundNumber(1), round_of("d") == RoundNumber(1));
}

TEST_F(JobLinkChecksTest, ASilentNodeIsNotSuspected) {
  join_all({"a", "b", "c"});
  passes(limits::kLinkCheckTimeout + limits::kLinkCheckReplyWait);
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  EXPECT_EQ(round_of("c"), RoundNumber(1));
}

TEST_F(JobLinkChecksTest, ASuspectThatIsSilentLaterLeavesNoneOut) {
  nodes(2, 3);
  join_all({"a", "b", "c", "d"});
  links_fail({"d"});
  is_cut_off("d");
  links_fail({"d"});
  EXPECT_EQ(job().assignments().size(), 3U);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(round_of(name), RoundNumber(1)) << name;
}

TEST_F(JobLinkChecksTest, ANodeThatGoesAwayIsNotWaitedFor) {
  join_all({"a", "b", "c"});
  dies("a");
  all_links_are_good();
  all_links_are_good();
  EXPECT_EQ(round_of("b"), RoundNumber(1));
  EXPECT_EQ(round_of("c"), RoundNumber(1));
}

TEST_F(JobLinkChecksTest, AFailedNodeIsCheckedAgainWhileTheJobWaits) {
  nodes(3, 3);
  join_all({"a", "b", "c"});
  links_fail({"c"});
  links_fail({"c"});
  expect_no_assignment("a");
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  passes(limits::kNodeCheckRetryInterval);
  all_links_are_good();
  EXPECT_EQ(round_of("c"), RoundNumber(1));
  EXPECT_EQ(failed_checks("c"), 1);
}

TEST_F(JobLinkChecksTest, AFailedLinkExcludesTheHostAsAFailedCheckDoes) {
  job_spec.exclude_after = 1;
  join_all({"a", "b", "c"});
  links_fail({"c"});
  links_fail({"c"});
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  EXPECT_TRUE(job().hosts().is_excluded("c"));
  EXPECT_TRUE(has_note("host_excluded"));
}

TEST_F(JobLinkChecksTest, AFaultThatStaysCountsOnce) {
  nodes(3, 3);
  join_all({"a", "b", "c"});
  for (int i = 0; i < 3; ++i) {
    links_fail({"c"});
    links_fail({"c"});
    passes(limits::kNodeCheckRetryInterval);
  }
  EXPECT_EQ(failed_checks("c"), 1);
}

TEST_F(JobLinkChecksTest, ASlowLinkIsReportedAndTakesPart) {
  nodes(2, 8);
  join_all({"a", "b", "c", "d", "e", "f", "g", "h"});
  for (int stage = 0; stage < 2; ++stage) {
    std::vector<std::pair<std::string, CheckLink>> asked;
    for (auto& [name, each] : players) {
      for (const auto& message : each.received) {
        if (const auto* check = std::get_if<CheckLink>(&message)) asked.emplace_back(name, *check);
      }
      each.received.clear();
    }
    for (const auto& [name, check] : asked) {
      const bool is_slow = name == "h" || check.peer.port == 5008;
      sends(name, LinkResult{check.number, "", 2 * check.bytes,
                             std::chrono::milliseconds(is_slow ? 1000 : 300)});
    }
  }
  EXPECT_EQ(job().assignments().size(), 8U);
  ASSERT_TRUE(job().hosts().find("h"));
  EXPECT_EQ(job().hosts().find("h")->slow, 1);
  EXPECT_EQ(job().hosts().find("g"), nullptr);
}

TEST_F(JobLinkChecksTest, AResultOfAnotherNodeOrNumberIsIgnored) {
  join_all({"a", "b"});
  ASSERT_TRUE(is_checking("a"));
  const int64_t number = received<CheckLink>("a")->number;
  sends("b", LinkResult{number, "", 1, std::chrono::seconds(1)});
  sends("a", LinkResult{number + 100, "", 1, std::chrono::seconds(1)});
  expect_no_assignment("a");
  sends("a", LinkResult{number, "", 1, std::chrono::seconds(1)});
  EXPECT_EQ(round_of("a"), RoundNumber(1));
}

TEST_F(JobLinkChecksTest, NodesWithoutTheOptionAreNotChecked) {
  join("a");
  join("b");
  passes(limits::kLastCall);
  EXPECT_FALSE(is_checking("a"));
  EXPECT_EQ(round_of("a"), RoundNumber(1));
}

// Any number of nodes of which some have bad links: no good node is left out, and with at least one
// pair of good nodes in the first stage no bad one takes part.
TEST(LinkChecksTest, RandomBadNodesAreFoundAndNoGoodOneIs) {
  std::mt19937_64 random(7);
  for (int seed = 0; seed < 2000; ++seed) {
    NodeTable nodes;
    HostLedger hosts(0);
    LinkChecks links(kBytes);
    const auto size = static_cast<int64_t>(2 + random() % (seed % 50 == 0 ? 999 : 30));
    const double share = static_cast<double>(random() % 100) / 100;
    std::set<Incarnation> bad;
    for (int64_t i = 1; i <= size; ++i) {
      const Incarnation id(static_cast<uint64_t>(i));
      control::Hello hello;
      hello.node = NodeId{"n" + std::to_string(i), id};
      control::Register facts;
      facts.link_port = i;
      Effects ignored;
      nodes.update_ready(nodes.add(Instant{}, SessionId(static_cast<uint64_t>(i)), hello, facts,
                                   SessionAddresses{"10.0.0.9", "10.0.0.1"}, ignored));
      if (static_cast<double>(random() % 1000) < 1000 * share) bad.insert(id);
    }
    bool has_good_pair = false;
    int stages = 0;
    Effects effects;
    while (!links.are_done(Instant{}, {nodes, hosts, size}, effects)) {
      ASSERT_LE(++stages, 2);
      for (const Effect& effect : std::exchange(effects, {})) {
        const auto* sent = std::get_if<Send>(&effect);
        if (sent == nullptr) continue;
        const auto& check = std::get<CheckLink>(sent->message);
        const Node& from = *nodes.find(sent->session);
        const bool fails = bad.contains(from.id.incarnation) ||
                           bad.contains(Incarnation(static_cast<uint64_t>(check.peer.port)));
        has_good_pair |= !fails;
        links.take(from, {check.number, fails ? "no answer" : "", 1, std::chrono::seconds(1)});
      }
    }
    for (const auto& [id, node] : nodes) {
      const bool is_left_out = !node.link_failure.empty();
      EXPECT_EQ(is_left_out, has_good_pair && bad.contains(id)) << seed << " " << node.id.name;
    }
  }
}

}  // namespace
}  // namespace cpprun::test
