// events.jsonl on a file system that answers, and on one that does not.
#include "agent/daemon/events/event_log.hpp"

#include <filesystem>

#include "common/limits/agent.hpp"
#include "tests/support/blocked_io.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

TEST(EventLogTest, KeepsTheOrderOfItsLines) {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  IoThread io;
  EventLog log(loop, folder / "events", io);
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    const std::string line = std::to_string(i) + "\n";
    log.write(line);
    all += line;
  }
  log.close();
  EXPECT_EQ(read_file(folder / "events"), all);
  log.write("later\n");
  EXPECT_EQ(read_file(folder / "events"), all);
}

TEST(EventLogTest, WritesTheLinesOfAShortTimeTogether) {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  IoThread io;
  EventLog log(loop, folder / "events", io);
  log.write("1\n");
  EXPECT_TRUE(io.wait(std::chrono::seconds(60)));
  EXPECT_EQ(read_file(folder / "events"), "1\n") << "the first goes at once";
  log.write("2\n");
  log.write("3\n");
  EXPECT_TRUE(io.wait(std::chrono::seconds(60)));
  EXPECT_EQ(read_file(folder / "events"), "1\n") << "the thread was not called";
  loop.run();  // until the timer has fired
  EXPECT_TRUE(io.wait(std::chrono::seconds(60)));
  EXPECT_EQ(read_file(folder / "events"), "1\n2\n3\n");
  log.write("4\n");
  loop.restart();
  loop.run();
  EXPECT_TRUE(io.wait(std::chrono::seconds(60)));
  EXPECT_EQ(read_file(folder / "events"), "1\n2\n3\n4\n");
}

TEST(EventLogTest, DropsWholeLinesWhileItsFileSystemDoesNotAnswer) {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  BlockedIo blocked;
  EventLog log(loop, folder / "events", *blocked.io);
  const std::string line = std::string(1023, 'x') + "\n";
  for (size_t size = 0; size < 2 * limits::kEventsPendingBytes; size += line.size()) {
    log.write(line);
  }
  EXPECT_EQ(read_file(folder / "events"), "");
  blocked.release();
  log.close();
  const std::string kept = read_file(folder / "events");
  EXPECT_EQ(kept.size(), limits::kEventsPendingBytes);
  EXPECT_TRUE(kept.ends_with(line));
}

TEST(EventLogTest, ItsEndDoesNotWaitForAFileSystemThatDoesNotAnswer) {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  BlockedIo blocked;
  {
    EventLog log(loop, folder / "events", *blocked.io);
    log.write("line\n");
  }
  EXPECT_EQ(read_file(folder / "events"), "");
  blocked.release();
  EXPECT_TRUE(blocked.io->wait(std::chrono::seconds(60)));
  EXPECT_EQ(read_file(folder / "events"), "line\n") << "the thread wrote it afterwards";
}

TEST(EventLogTest, AFileThatCannotBeOpenedStopsNothing) {
  boost::asio::io_context loop;
  IoThread io;
  EventLog log(loop, "/proc/nowhere/events", io);
  log.write("line\n");
  log.close();
}

}  // namespace
}  // namespace cpprun::test
