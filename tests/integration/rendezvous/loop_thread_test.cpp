// Exceptions on threads: neither ends the program, and somebody learns of them.
#include "rendezvous/server/loop_thread.hpp"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <stdexcept>
#include <string>

#include "common/thread/detached_thread.hpp"
#include "tests/support/server_fixture.hpp"

namespace cpprun {
namespace {

TEST(LoopThread, ReportsAnExceptionAndContinues) {
  LoopThread thread;
  std::promise<std::string> failure;
  thread.start([&](const std::string& why) { failure.set_value(why); });
  thread.loop().post([] { throw std::runtime_error("no such luck"); });
  std::future<std::string> reported = failure.get_future();
  ASSERT_EQ(reported.wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(reported.get(), "no such luck");
  std::promise<void> later;
  thread.loop().post([&] { later.set_value(); });
  EXPECT_EQ(later.get_future().wait_for(kDeadline), std::future_status::ready);
  bool has_ended = false;
  thread.end([&] { has_ended = true; });
  EXPECT_TRUE(has_ended);
}

TEST(DetachedThread, AnExceptionEndsOnlyTheThread) {
  auto owned = std::make_shared<std::promise<void>>();  // the thread's end destroys its copy
  std::future<void> end = owned->get_future();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(start_detached_thread([owned = std::move(owned)] { throw std::bad_alloc(); }).ok());
  EXPECT_EQ(end.wait_for(kDeadline), std::future_status::ready);
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_NE(output.find("a background thread has failed: std::bad_alloc"), std::string::npos)
      << output;
}

}  // namespace
}  // namespace cpprun
