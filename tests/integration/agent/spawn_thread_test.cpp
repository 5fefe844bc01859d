// The spawn thread: order, errors, and what a cancelled start leaves behind.
#include "agent/process/spawn/spawn_thread.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDeadline = 60s;

// A door that is shut at first.
class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }
  bool opens() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

const std::vector<std::string> kNoEnvironment;

Result<Spawned> spawn(SpawnContext& context, StartTicket& ticket, const std::string& text) {
  const std::vector<std::string> argv{"/bin/sh", "-c", text};
  SpawnPlan plan{.program = argv[0], .argv = argv, .environment = kNoEnvironment};
  plan.ticket = &ticket;
  return context.spawn(plan);
}

SpawnThread::Start start_of(const std::string& text) {
  return
      [text](SpawnContext& context, StartTicket& ticket) { return spawn(context, ticket, text); };
}

// The status of a child that ended by this code or signal.
int status_of(int pid) {
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED), 0);
  return info.si_status;
}

class SpawnThreadTest : public ::testing::Test {
 protected:
  std::vector<SpawnThread::Outcome> outcomes(size_t count) {
    std::vector<SpawnThread::Outcome> all;
    std::unique_lock lock(mutex_);
    while (all.size() < count) {
      std::ranges::move(thread_->take(), std::back_inserter(all));
      if (all.size() >= count) break;
      if (!has_news_.wait_for(lock, kDeadline, [this] { return std::exchange(news_, 0) > 0; })) {
        ADD_FAILURE() << "waited in vain";
        break;
      }
    }
    return all;
  }

  // Those that wait when the thread calls.
  std::vector<SpawnThread::Outcome> outcomes_of_call() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(has_news_.wait_for(lock, kDeadline, [this] { return calls_ > 0; }));
    EXPECT_EQ(calls_, 1);
    return thread_->take();
  }

  std::mutex mutex_;
  std::condition_variable has_news_;
  int news_ = 0;
  int calls_ = 0;
  std::unique_ptr<SpawnThread> thread_ = std::make_unique<SpawnThread>([this] {
    const std::lock_guard lock(mutex_);
    ++news_;
    ++calls_;
    has_news_.notify_all();
  });
};

TEST_F(SpawnThreadTest, StartsInOrderUpToTheFirstError) {
  const auto fails = [](SpawnContext&, StartTicket&) -> Result<Spawned> {
    return Error{ErrorKind::System, "as planned"};
  };
  thread_->begin({start_of("exit 3"), start_of("exit 4"), fails, start_of("exit 5")});
  const auto all = outcomes(3);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(status_of(all[0].spawned->pid), 3);
  EXPECT_EQ(status_of(all[1].spawned->pid), 4);
  EXPECT_EQ(all[2].spawned.error().text, "as planned");
  EXPECT_FALSE(thread_->is_busy());
  thread_->begin({start_of("exit 6")});
  const auto next = outcomes(1);
  EXPECT_EQ(status_of(next.at(0).spawned->pid), 6);
}

TEST_F(SpawnThreadTest, CallsOnceAfterTheLastStart) {
  const auto begun = std::make_shared<Door>(), held = std::make_shared<Door>();
  thread_->begin(
      {start_of("exit 3"), start_of("exit 4"), [=](SpawnContext& context, StartTicket& ticket) {
         begun->open();
         held->pass();
         return spawn(context, ticket, "exit 5");
       }});
  ASSERT_TRUE(begun->opens());
  const auto earlier = thread_->take();
  ASSERT_EQ(earlier.size(), 2U) << "they need no call";
  held->open();
  const auto last = outcomes_of_call();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].index, 2U);
  EXPECT_EQ(status_of(earlier[0].spawned->pid), 3);
  EXPECT_EQ(status_of(earlier[1].spawned->pid), 4);
  EXPECT_EQ(status_of(last[0].spawned->pid), 5);
}

// Else the caller would not learn of the workers that have started.
TEST_F(SpawnThreadTest, CallsAfterACancellationThatLeavesOutcomes) {
  const auto begun = std::make_shared<Door>(), held = std::make_shared<Door>();
  thread_->begin({start_of("exit 3"), [=](SpawnContext&, StartTicket&) -> Result<Spawned> {
                    begun->open();
                    held->pass();
                    return Error{ErrorKind::System, "cancelled"};
                  }});
  ASSERT_TRUE(begun->opens());
  thread_->cancel();
  held->open();
  const auto all = outcomes_of_call();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(status_of(all[0].spawned->pid), 3);
  EXPECT_FALSE(thread_->is_busy());
}

TEST_F(SpawnThreadTest, ACancelledStartWithoutAChildRunsNoProgram) {
  const auto begun = std::make_shared<Door>(), held = std::make_shared<Door>();
  const auto late = std::make_shared<std::optional<Result<Spawned>>>();
  const auto ended = std::make_shared<Door>();
  thread_->begin({[=](SpawnContext& context, StartTicket& ticket) {
                    begun->open();
                    held->pass();
                    Result<Spawned> spawned = spawn(context, ticket, "exit 3");
                    EXPECT_FALSE(spawned.ok());
                    ended->open();
                    return spawned;
                  },
                  start_of("exit 4")});
  ASSERT_TRUE(begun->opens());
  EXPECT_EQ(thread_->pending()->child, 0);
  thread_->cancel();
  EXPECT_FALSE(thread_->is_busy()) << "nothing follows";
  thread_->begin({start_of("exit 5")});  // it waits for the thread
  held->open();
  ASSERT_TRUE(ended->opens());
  const auto all = outcomes(1);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(status_of(all[0].spawned->pid), 5);
}

// As execve does when the file system of the program does not answer.
Result<Spawned> wait_for_end(SpawnContext& context, StartTicket& ticket, Door& begun) {
  Result<Spawned> spawned = spawn(context, ticket, "exec sleep 600");
  if (!spawned) return spawned;
  ticket.begin_child(spawned->pid);
  begun.open();
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(spawned->pid), &info, WEXITED | WNOWAIT);
  return spawned;
}

TEST_F(SpawnThreadTest, CancelKillsTheChildThatIsUnderWay) {
  const auto begun = std::make_shared<Door>();
  thread_->begin({[begun](SpawnContext& context, StartTicket& ticket) {
                    return wait_for_end(context, ticket, *begun);
                  },
                  start_of("exit 4")});
  ASSERT_TRUE(begun->opens());
  const int child = thread_->pending()->child;
  EXPECT_EQ(thread_->index_of(child), 0U);
  thread_->cancel();
  const auto all = outcomes(1);
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].spawned->pid, child);
  EXPECT_EQ(status_of(child), SIGKILL);
  EXPECT_FALSE(thread_->is_busy()) << "the next start did not begin";
}

TEST_F(SpawnThreadTest, AStopWaitsForTheStartThatIsUnderWay) {
  const auto begun = std::make_shared<Door>(), held = std::make_shared<Door>();
  thread_->begin({[=](SpawnContext& context, StartTicket& ticket) {
                    begun->open();
                    held->pass();
                    return spawn(context, ticket, "exit 3");
                  },
                  start_of("exit 4")});
  ASSERT_TRUE(begun->opens());
  thread_->stop();
  EXPECT_TRUE(thread_->is_busy());
  held->open();
  const auto all = outcomes_of_call();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(status_of(all[0].spawned->pid), 3);
  EXPECT_FALSE(thread_->is_busy()) << "the next start did not begin";
}

TEST_F(SpawnThreadTest, ItsEndKillsTheChildThatIsUnderWay) {
  const auto begun = std::make_shared<Door>();
  thread_->begin({[begun](SpawnContext& context, StartTicket& ticket) {
    return wait_for_end(context, ticket, *begun);
  }});
  ASSERT_TRUE(begun->opens());
  const int child = thread_->pending()->child;
  thread_.reset();
  const auto until = std::chrono::steady_clock::now() + kDeadline;
  while (::kill(child, 0) == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_NE(::kill(child, 0), 0) << "the thread has reaped it";
}

}  // namespace
}  // namespace cpprun::test
