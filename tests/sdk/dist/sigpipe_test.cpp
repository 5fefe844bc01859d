// SIGPIPE once a program has a process group.
#include <signal.h>

#include <gtest/gtest.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {
namespace {

void (*handler_of_sigpipe())(int) {
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  return now.sa_handler;
}

class Sigpipe : public ::testing::Test {
 protected:
  ~Sigpipe() override { ::signal(SIGPIPE, SIG_DFL); }
};

TEST_F(Sigpipe, IsIgnoredSinceAWriteToALostPeerMustNotEndTheProcess) {
  ::signal(SIGPIPE, SIG_DFL);
  const auto group = init_process_group_or_single();
  EXPECT_EQ(handler_of_sigpipe(), SIG_IGN);
}

TEST_F(Sigpipe, StaysAsTheProgramHandlesIt) {
  void (*const handler)(int) = [](int) {};
  ::signal(SIGPIPE, handler);
  const auto group = init_process_group_or_single();
  EXPECT_EQ(handler_of_sigpipe(), handler);
}

}  // namespace
}  // namespace cpprun::dist
