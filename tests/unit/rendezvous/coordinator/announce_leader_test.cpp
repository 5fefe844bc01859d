// Announcements at the job's endpoint that another coordinator leads the job (R17), and rejected
// ones.
#include <algorithm>
#include <memory>

#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

class AnnounceLeader : public JobTest {
 public:
  void announces_leader(const std::string& name, const control::AnnounceLeader& leader_message = {
                                                     Term(8), "10.0.0.2", 4702}) {
    connects(name);
    sends_hello(name);
    sends(name, leader_message);
  }
  int64_t notes_of(const std::string& event) {
    return std::ranges::count_if(notes, [&](const LogEvent& note) { return note.event == event; });
  }
};

TEST_F(AnnounceLeader, R17_RejectsAnUnusableAddress) {
  const control::AnnounceLeader senseless[] = {{Term(8), "", 4702},
                                               {Term(8), std::string(2000, 'x'), 4702},
                                               {Term(8), "10.0.0.2 and more", 4702},
                                               {Term(8), "10.0.0.2", 0},
                                               {Term(8), "10.0.0.2", 65536},
                                               {Term(0), "10.0.0.2", 4702}};
  for (size_t i = 0; i < std::size(senseless); ++i) {
    const std::string name = "n" + std::to_string(i);
    announces_leader(name, senseless[i]);
    expect_refused(name, "no node can lead");
  }
  join("a");
  EXPECT_FALSE(received<control::Redirect>("a"));
}

TEST_F(AnnounceLeader, R17_ARegisteredAgentIsNoCoordinator) {
  join("a");
  sends("a", control::AnnounceLeader{Term(8), "10.0.0.2", 4702});
  expect_refused("a", "no node can lead");
}

TEST_F(AnnounceLeader, R17_AJobThatRunsHereContinuesHereWithAWarning) {
  a_and_b_run();
  announces_leader("x");
  EXPECT_TRUE(received<control::Redirect>("x")) << "it was received";
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_FALSE(received<control::Redirect>("a"));
  player("x").received.clear();
  sends("x", control::AnnounceLeader{Term(8), "10.0.0.2", 4702});
  EXPECT_TRUE(received<control::Redirect>("x")) << "so that it knows that somebody listens";
  EXPECT_EQ(notes_of("two_jobs"), 1);
  dies("b");
  passes(limits::kDeathGrace);
  sends_stopped("a");
  join("c");
  EXPECT_FALSE(received<control::Redirect>("c"));
  expect_assignment("c", 2, 1, 4);
}

TEST_F(AnnounceLeader, R17_AcceptsMessagesSentBeforeTheRedirect) {
  announces_leader("x");
  join("a");
  sends("a", control::Stopped{RoundNumber(1), 40001});
  EXPECT_TRUE(received<control::Redirect>("a"));
  EXPECT_FALSE(received<control::Refused>("a"));
}

// The key stands for the MAC that is made with it.
class ConfirmedLeader : public AnnounceLeader {
 public:
  ConfirmedLeader() { begins(true); }
  void begins(bool needs_known_leader) {
    CoordinatorOptions options{
        "head", Term(9), {}, limits::kWaitReminderInterval, [] { return std::string("secret"); }};
    options.needs_known_leader = needs_known_leader;
    options.is_leader_of = [](const std::string& job_key, const std::string& of,
                              const control::AnnounceLeader& message) {
      return of == "job" && message.mac == "mac with " + job_key;
    };
    std::destroy_at(&core);
    std::construct_at(&core, std::move(options));
  }
  void reconnects_with(const std::string& name, const std::string& job_key) {
    control::RankAssignment made;
    made.term = player(name).facts.term = Term(8);
    made.round = RoundNumber(3);
    made.group_size = 2;
    made.is_led_by_standby = true;
    made.job_key = job_key;
    player(name).facts.assignment = made;
    returns(name, control::ReportedPhase::Running, 3);
  }
  static control::AnnounceLeader leader(const std::string& mac) {
    return {Term(8), "10.0.0.2", 4702, mac};
  }
};

TEST_F(ConfirmedLeader, R17_AForeignClientRedirectsNoNodeBeforeTheJobBegins) {
  for (const char* mac : {"", "mac with ", "mac with secret"}) {
    announces_leader("x", leader(mac));
    expect_refused("x", "confirms");
  }
  join("a");
  join("b");
  EXPECT_FALSE(received<control::Redirect>("a"));
  EXPECT_EQ(round_of("a"), RoundNumber(1));
}

TEST_F(ConfirmedLeader, R17_AForeignClientRedirectsNoMemberThatReturns) {
  for (const bool needs_known_leader : {true, false}) {
    begins(needs_known_leader);
    reconnects_with("a", "key");
    announces_leader("x", leader("mac with another"));
    expect_refused("x", "confirms");
    EXPECT_FALSE(received<control::Redirect>("a"));
    player("x").session.reset();
  }
}

TEST_F(ConfirmedLeader, R17_AMemberConfirmsTheLeaderOfItsJob) {
  reconnects_with("a", "key");
  announces_leader("x", leader("mac with key"));
  EXPECT_TRUE(received<control::Redirect>("x"));
  EXPECT_TRUE(received<control::Redirect>("a"));
  join("b");
  EXPECT_TRUE(received<control::Redirect>("b"));
}

TEST_F(ConfirmedLeader, R17_WithoutAMemberAnAgentThatHostsBelieves) {
  begins(false);
  announces_leader("x", leader(""));
  join("a");
  EXPECT_TRUE(received<control::Redirect>("a"));
}

TEST_F(ConfirmedLeader, R17_AForeignAnnouncementDuringAJobHoldsForNoLaterOne) {
  join("a");
  join("b");
  announces_leader("x", leader(""));
  EXPECT_EQ(notes_of("two_jobs"), 1);
  for (const char* name : {"a", "b"}) leaves(name);
  join("c");
  EXPECT_FALSE(received<control::Redirect>("c"));
}

TEST_F(ConfirmedLeader, R17_RefusesAnAddressWithControlCharacters) {
  announces_leader("x", {Term(8), "10.0.0.2\x1b[2J", 4702, "mac with key"});
  expect_refused("x", "no node can lead");
}

TEST_F(AnnounceLeader, R17_AnAnnouncementEndsWithItsConnection) {
  announces_leader("x");
  join("a");
  EXPECT_TRUE(received<control::Redirect>("a"));
  EXPECT_TRUE(core.jobs().empty());
  dies("x");
  join("b");
  EXPECT_FALSE(received<control::Redirect>("b"));
  EXPECT_EQ(core.jobs().size(), 1U);
}

}  // namespace
}  // namespace cpprun::test
