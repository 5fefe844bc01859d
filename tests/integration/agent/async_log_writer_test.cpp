// Unread text waits in a queue, and its writer does not block.
#include "common/log/async_log_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/limits/log.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun::test {
namespace {

class AsyncLogWriterTest : public testing::Test {
 protected:
  AsyncLogWriterTest() {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    static auto& all = *new std::vector<log::AsyncLogWriter*>();  // as long as the process
    all.push_back(writer = new log::AsyncLogWriter(ends_[1]));
  }
  ~AsyncLogWriterTest() override { stop_reading(); }

  void stop_reading() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }
  std::string reads(size_t bytes) {
    std::string text(bytes, '\0');
    size_t at = 0;
    while (at < bytes) {
      const ssize_t size = ::read(ends_[0], text.data() + at, bytes - at);
      if (size <= 0) break;
      at += static_cast<size_t>(size);
    }
    text.resize(at);
    return text;
  }

  log::AsyncLogWriter* writer = nullptr;

 private:
  std::array<int, 2> ends_{};
};

TEST_F(AsyncLogWriterTest, WritesImmediatelyWhenTheReaderReads) {
  writer->write("one\n");
  writer->write("two\n");
  EXPECT_EQ(reads(8), "one\ntwo\n");
  writer->finish(Duration{});
}

TEST_F(AsyncLogWriterTest, QueuesInOrderWhileNobodyReads) {
  std::string all;
  for (int i = 0; all.size() < 200'000; ++i) {  // a pipe holds 64 KiB
    const std::string line = "line " + std::to_string(i) + "\n";
    writer->write(line);
    all += line;
  }
  EXPECT_EQ(reads(all.size()), all);
  writer->finish(std::nullopt);
  writer->write("after\n");
  EXPECT_EQ(reads(6), "after\n");
}

TEST_F(AsyncLogWriterTest, CountsBytesDroppedBeyondTheLimit) {
  const std::string line(1023, 'x');
  for (size_t size = 0; size < 2 * limits::kLogPendingBytes; size += 1024) {
    writer->write(line + "\n");
  }
  const std::string end = " left out here: they were not read for too long\n";
  std::string text;
  while (!text.ends_with(end)) text += reads(1);
  EXPECT_LT(text.size(), 2 * limits::kLogPendingBytes);
  EXPECT_NE(text.find("x\ncpprun: "), std::string::npos);
}

TEST_F(AsyncLogWriterTest, ClosingWaitsABoundedTime) {
  writer->write(std::string(200'000, 'x'));
  writer->finish(std::chrono::milliseconds(10));
  writer->finish(std::nullopt);  // as at exit
}

// Its file system may not answer, so a thread writes it.
TEST_F(AsyncLogWriterTest, ARegularFileGetsAllTextInOrder) {
  const TempFolder folder;
  const std::string path = folder.path() + "/log";
  static auto& all = *new std::vector<log::AsyncLogWriter*>();
  all.push_back(
      new log::AsyncLogWriter(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    all.back()->write(line);
    text += line;
  }
  all.back()->finish(std::nullopt);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(AsyncLogWriterTest, AClosedReaderEndsTheWait) {
  ::signal(SIGPIPE, SIG_IGN);
  writer->write(std::string(200'000, 'x'));
  stop_reading();
  writer->finish(std::nullopt);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace cpprun::test
