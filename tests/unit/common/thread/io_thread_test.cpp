// File operations in order, on a thread that may stand.
#include "common/thread/io_thread.hpp"

#include <thread>

#include "common/limits/agent.hpp"
#include "tests/support/blocked_io.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = 60s;  // bounds a hang

TEST(IoThreadTest, RunsTasksInOrderOnAThreadOfItsOwn) {
  IoThread io;
  std::vector<int> order;
  std::thread::id where;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(io.post([&, i] {
      order.push_back(i);
      where = std::this_thread::get_id();
    }));
  }
  ASSERT_TRUE(io.wait(kLong));
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(IoThreadTest, WaitEndsAtItsDeadline) {
  BlockedIo blocked;
  EXPECT_FALSE(blocked.io->wait(1ms));
  EXPECT_EQ(blocked.io->result_of([] { return 1; }, 1ms), std::nullopt);
  blocked.release();
  EXPECT_TRUE(blocked.io->wait(kLong));
  EXPECT_EQ(blocked.io->result_of([] { return 2; }, kLong), 2);
}

TEST(IoThreadTest, RefusesTasksBeyondTheLimit) {
  BlockedIo blocked;
  size_t posted = 0;
  while (posted <= limits::kIoTasks && blocked.io->post([] {})) ++posted;
  EXPECT_GE(posted, limits::kIoTasks - 1);  // the thread may have taken the blocked task or not
  EXPECT_LE(posted, limits::kIoTasks);
  blocked.release();
  EXPECT_TRUE(blocked.io->wait(kLong));
  EXPECT_TRUE(blocked.io->post([] {}));
}

TEST(IoThreadTest, ItsEndWaitsForNoTaskAndDropsTheOthersOnTheThread) {
  std::promise<void> go;
  std::promise<std::thread::id> destroyed;
  auto io = std::make_unique<IoThread>();
  io->post([end = go.get_future().share()] { end.wait(); });
  const auto noted = [&destroyed](int* at) {
    delete at;
    destroyed.set_value(std::this_thread::get_id());
  };
  bool has_run = false;
  io->post([&has_run, held = std::shared_ptr<int>(new int(0), noted)] { has_run = true; });
  io.reset();
  go.set_value();
  EXPECT_NE(destroyed.get_future().get(), std::this_thread::get_id());
  EXPECT_FALSE(has_run);
}

}  // namespace
}  // namespace cpprun::test
