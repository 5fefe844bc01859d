// The thread of saves: one job at a time, and an end that waits for it.
#include "cpprun/snapshot/save/background_thread.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>

namespace cpprun::snapshot {
namespace {

TEST(BackgroundThread, RunsOneJobAfterTheOther) {
  BackgroundThread thread("test-saver");
  thread.wait();  // nothing has begun
  thread.start();
  for (int i = 0; i < 100; ++i) {
    std::promise<void> may_end;
    const auto held = std::make_shared<int>(i);
    bool has_ended = false;
    EXPECT_FALSE(thread.is_busy());
    thread.run([&, held, end = may_end.get_future().share()] {
      end.wait();
      has_ended = true;
    });
    EXPECT_TRUE(thread.is_busy());
    may_end.set_value();
    thread.wait();
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(held.use_count(), 1) << "a job that has ended keeps nothing";
  }
}

TEST(BackgroundThread, EndsAfterTheRunningJob) {
  std::atomic<bool> has_ended{false};
  {
    BackgroundThread thread("test-saver");
    thread.start();
    thread.run([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      has_ended = true;
    });
  }
  EXPECT_TRUE(has_ended);
}

TEST(BackgroundThread, RunsNoSignalHandlers) {
  BackgroundThread thread("test-saver");
  thread.start();
  bool is_blocked = false;
  thread.run([&] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    is_blocked = sigismember(&mask, SIGTERM) == 1;
  });
  thread.wait();
  EXPECT_TRUE(is_blocked);
}

// A program that forks has no such thread in the child, where the destructor of what the thread was
// waiting for at the fork would not return.
void expect_child_does_not_wait(std::unique_ptr<BackgroundThread>& thread) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(10);  // instead of a hang
    thread->wait();
    const bool is_busy = thread->is_busy();
    thread.reset();
    ::_exit(is_busy ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(BackgroundThread, AForkedChildDoesNotWaitForIt) {
  auto thread = std::make_unique<BackgroundThread>("test-saver");
  thread->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits for a job
  expect_child_does_not_wait(thread);
  std::promise<void> has_begun, may_end;
  thread->run([&has_begun, end = may_end.get_future().share()] {
    has_begun.set_value();
    end.wait();
  });
  has_begun.get_future().wait();
  expect_child_does_not_wait(thread);
  may_end.set_value();
}

}  // namespace
}  // namespace cpprun::snapshot
