// The connection on which a promoted standby announces itself at the job's endpoint (R17).
#include "rendezvous/client/core/leader_announcer_core.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using Action = LeaderAnnouncerCore::Action;

constexpr auto kAnnouncements = limits::kHelloTimeout / limits::kAnnounceInterval;

TEST(LeaderAnnouncerCore, SendsNothingWithoutAConnection) {
  LeaderAnnouncerCore core;
  EXPECT_EQ(core.on_time(), Action::Nothing);
  core.on_answer();  // a late message of a closed connection
  EXPECT_EQ(core.on_time(), Action::Nothing);
}

TEST(LeaderAnnouncerCore, RepeatsTheAnnouncementToAnAnsweringPeer) {
  LeaderAnnouncerCore core;
  core.on_connected();
  for (int i = 0; i < 100; ++i) {
    core.on_answer();
    EXPECT_EQ(core.on_time(), Action::Announce);
  }
}

TEST(LeaderAnnouncerCore, GivesUpOnASilentConnection) {
  LeaderAnnouncerCore core;
  core.on_connected();
  core.on_answer();
  for (int i = 0; i < kAnnouncements; ++i) EXPECT_EQ(core.on_time(), Action::Announce);
  EXPECT_EQ(core.on_time(), Action::Reconnect);
  EXPECT_EQ(core.on_time(), Action::Nothing) << "until there is a line again";
  core.on_connected();
  EXPECT_EQ(core.on_time(), Action::Announce);
}

TEST(LeaderAnnouncerCore, SendsNothingOnAClosedConnection) {
  LeaderAnnouncerCore core;
  core.on_connected();
  core.on_ended();
  EXPECT_EQ(core.on_time(), Action::Nothing);
}

}  // namespace
}  // namespace cpprun::test
