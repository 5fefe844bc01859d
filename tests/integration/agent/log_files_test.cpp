// read_log_files(): parts of real files of a round, and their gaps; and LogFileServer, which calls
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/daemon/services/log_file_server.hpp"
#include "common/limits/log_files.hpp"
#include "common/machine/clock.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

using control::LogGap;
using control::LogPart;
using control::LogReply;
using control::LogRequest;
using testing::IsEmpty;
using testing::SizeIs;

// Lets this process open so many further descriptors.
class FreeDescriptors {
 public:
  explicit FreeDescriptors(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit low{static_cast<rlim_t>(next) + count, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
  }
  ~FreeDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FreeDescriptors(const FreeDescriptors&) = delete;

 private:
  rlimit before_{};
};

class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() : logs_{RoundNumber(3), 4, 2, temp_.path() + "/attempt_0"} {
    for (int rank = 0; rank < 2; ++rank) fs::create_directories(folder(rank));
  }

  std::string folder(int rank) const { return logs_.folder + "/" + std::to_string(rank); }
  std::string out(int rank) const { return folder(rank) + "/stdout.log"; }
  static void append(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::app) << text;
  }
  // Reads, and asks for what follows the next time.
  LogReply read() {
    LogReply reply = read_log_files(logs_, request_);
    for (const LogPart& part : reply.parts) {
      const auto index = static_cast<size_t>(part.stream);
      if (request_.offsets.size() <= index) {
        request_.offsets.resize(index + 1);
        request_.files.resize(index + 1);
      }
      request_.offsets[index] = part.offset + static_cast<int64_t>(part.bytes.size());
      request_.files[index] = part.file;
    }
    return reply;
  }

  test::TempFolder temp_;
  RoundLogs logs_;
  LogRequest request_;
};

TEST_F(LogFilesTest, ReadsWhatIsNew) {
  append(out(0), "one\n");
  append(folder(1) + "/stderr.log", "problem\n");
  LogReply reply = read();
  EXPECT_EQ(reply.round, RoundNumber(3));
  EXPECT_EQ(reply.base_rank, 4);
  EXPECT_TRUE(reply.has_files);
  EXPECT_FALSE(reply.has_more);
  ASSERT_THAT(reply.parts, SizeIs(2));
  EXPECT_EQ(reply.parts[0].stream, 0);
  EXPECT_EQ(reply.parts[0].bytes, "one\n");
  EXPECT_EQ(reply.parts[1].stream, 3);
  EXPECT_EQ(reply.parts[1].bytes, "problem\n");

  EXPECT_THAT(read().parts, IsEmpty());
  append(out(0), "two\n");
  reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].offset, 4);
  EXPECT_EQ(reply.parts[0].bytes, "two\n");
}

TEST_F(LogFilesTest, AJobWithoutLogFilesIsReported) {
  logs_.folder.clear();
  const LogReply reply = read();
  EXPECT_FALSE(reply.has_files);
  EXPECT_THAT(reply.parts, IsEmpty());
}

TEST_F(LogFilesTest, ALargeFileComesInPartsThatFitIntoAFrame) {
  std::string whole;
  while (whole.size() < 3 * limits::kLogReplyBytes) {
    whole += "line " + std::to_string(whole.size()) + "\n";
  }
  append(out(0), whole);
  std::string got;
  bool has_more = true;
  for (int i = 0; i < 100 && has_more; ++i) {
    const LogReply reply = read();
    has_more = reply.has_more;
    size_t bytes = 0;
    for (const LogPart& part : reply.parts) {
      EXPECT_LE(part.bytes.size(), limits::kLogPartBytes);
      bytes += part.bytes.size();
      got += part.bytes;
    }
    EXPECT_LE(bytes, limits::kLogReplyBytes);
  }
  EXPECT_EQ(got, whole);
}

// A stream that is written all the time does not keep the others waiting.
TEST_F(LogFilesTest, EachStreamGetsAShareOfAReply) {
  for (int rank = 0; rank < 2; ++rank) append(out(rank), std::string(1 << 20, 'x'));
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(2));
  EXPECT_GT(reply.parts[0].bytes.size(), 0U);
  EXPECT_EQ(reply.parts[0].bytes.size(), reply.parts[1].bytes.size());
}

TEST_F(LogFilesTest, TheLastLinesOnly) {
  append(out(0), "one\ntwo\nthree\nincomplete");
  append(out(1), "only\n");
  request_.lines = 2;
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(2));
  EXPECT_EQ(reply.parts[0].bytes, "three\nincomplete");
  EXPECT_EQ(reply.parts[1].bytes, "only\n");
}

TEST_F(LogFilesTest, NoLinesOfThePast) {
  append(out(0), "old\n");
  request_.lines = 0;
  LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].bytes, "");
  append(out(0), "new\n");
  reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].bytes, "new\n");
}

TEST_F(LogFilesTest, ATruncatedFileIsAGap) {
  append(out(0), "one\ntwo\n");
  read();
  fs::resize_file(out(0), 0);
  append(out(0), "new\n");
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].gap, LogGap::Truncated);
  EXPECT_EQ(reply.parts[0].offset, 0);
  EXPECT_EQ(reply.parts[0].bytes, "new\n");
}

TEST_F(LogFilesTest, AReplacedFileIsAGap) {
  append(out(0), "one\n");
  read();
  append(folder(0) + "/new", "other\n");
  fs::rename(folder(0) + "/new", out(0));
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].gap, LogGap::Replaced);
  EXPECT_EQ(reply.parts[0].bytes, "other\n");
}

TEST_F(LogFilesTest, ARemovedFileIsAGap) {
  append(out(0), "one\n");
  read();
  fs::remove(out(0));
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].gap, LogGap::Removed);
  EXPECT_EQ(reply.parts[0].offset, 4);
}

TEST_F(LogFilesTest, ANodeMayHaveMoreFilesThanTheAgentHasDescriptors) {
  constexpr int kWorkers = 40;
  logs_.workers = kWorkers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    fs::create_directories(folder(rank));
    append(out(rank), "one\n");
  }
  const FreeDescriptors few(4);
  const LogReply reply = read();
  EXPECT_EQ(reply.why, "");
  ASSERT_THAT(reply.parts, SizeIs(kWorkers));
  for (const LogPart& part : reply.parts) EXPECT_EQ(part.bytes, "one\n");
}

TEST_F(LogFilesTest, WithoutADescriptorNoFileCountsAsRemoved) {
  append(out(0), "one\n");
  read();
  {
    const FreeDescriptors none(0);
    const LogReply reply = read();
    EXPECT_THAT(reply.parts, IsEmpty());
    EXPECT_NE(reply.why, "") << "so that the reader asks again";
  }
  append(out(0), "two\n");
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].gap, LogGap::None);
  EXPECT_EQ(reply.parts[0].bytes, "two\n");
}

// A folder or a FIFO in place of a file must not stop the reader.
TEST_F(LogFilesTest, WhatIsNoFileIsNotRead) {
  fs::create_directory(out(0));
  ASSERT_EQ(::mkfifo(out(1).c_str(), 0600), 0);
  EXPECT_THAT(read().parts, IsEmpty());
}

TEST_F(LogFilesTest, AFolderThatALaterRoundHasRenamedIsFound) {
  append(out(0), "one\n");
  fs::rename(logs_.folder, logs_.folder + ".round_3");
  fs::create_directories(folder(0));
  append(out(0), "of the next round\n");
  const LogReply reply = read();
  ASSERT_THAT(reply.parts, SizeIs(1));
  EXPECT_EQ(reply.parts[0].bytes, "one\n");
}

// ---------------------------------------------------------------- rounds, readers, end of a job

class LogFileServerTest : public testing::Test {
 protected:
  // The next round, with a line in the file of its only worker.
  void begin_round(int64_t number) {
    attempt_ = temp_.path() + "/attempt_" + std::to_string(number);
    std::filesystem::create_directories(attempt_ + "/0");
    std::ofstream(attempt_ + "/0/stdout.log") << "line of round " << number << "\n";
    server_.on_workers_start(RoundNumber(number), 10 * number);
  }
  // Runs the loop until so many replies have come.
  void run_until(size_t replies) {
    const Instant end = boot_now() + std::chrono::seconds(100);
    loop_.restart();
    while (sent_.size() < replies && boot_now() < end)
      loop_.run_one_for(std::chrono::milliseconds(50));
    ASSERT_EQ(sent_.size(), replies);
  }
  LogReply ask(int64_t reader, int64_t round, int64_t lines = -1) {
    const size_t replies = sent_.size() + 1;
    server_.on_request(request(reader, round, lines));
    run_until(replies);
    return sent_.back();
  }
  LogRequest request(int64_t reader, int64_t round, int64_t lines = -1) {
    LogRequest made;
    made.id = ++ids_;
    made.reader = reader;
    made.round = RoundNumber(round);
    made.lines = lines;
    return made;
  }
  static std::string text_of(const LogReply& reply) {
    return reply.parts.empty() ? "" : reply.parts.front().bytes;
  }

  boost::asio::io_context loop_{1};
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      loop_.get_executor()};
  const test::TempFolder temp_;
  std::string attempt_;
  int64_t ids_ = 0;
  std::vector<LogReply> sent_;
  bool is_over_ = false;
  LogFileServer server_{
      loop_,
      {[this](int rank) {
         return LogTailReporter::Files{attempt_ + "/" + std::to_string(rank) + "/stdout.log", ""};
       },
       [this](const LogReply& reply) { sent_.push_back(reply); }, 1}};
};

TEST_F(LogFileServerTest, BeforeAnyRoundThereIsNothing) {
  const LogReply reply = ask(1, 0);
  EXPECT_EQ(reply.id, 1);
  EXPECT_FALSE(reply.has_files);
  EXPECT_EQ(reply.why, "");
}

TEST_F(LogFileServerTest, AReaderGoesFromRoundToRound) {
  begin_round(1);
  begin_round(3);
  LogReply reply = ask(1, 0);
  EXPECT_EQ(reply.round, RoundNumber(1)) << "the first that the agent knows";
  EXPECT_EQ(reply.base_rank, 10);
  EXPECT_TRUE(reply.is_ended);
  EXPECT_EQ(text_of(reply), "line of round 1\n");
  ASSERT_EQ(reply.next_round, RoundNumber(3));
  reply = ask(1, 3);
  EXPECT_EQ(text_of(reply), "line of round 3\n");
  EXPECT_FALSE(reply.is_ended);
  EXPECT_EQ(reply.next_round, RoundNumber());
  EXPECT_EQ(ask(2, 0, 5).round, RoundNumber(3)) << "the last lines are those of the newest round";
}

TEST_F(LogFileServerTest, PositionsOfAnotherRoundDoNotCount) {
  begin_round(5);
  LogRequest late = request(1, 4);  // a round that was another node's
  late.offsets = {7};
  late.files = {4711};
  server_.on_request(late);
  run_until(1);
  EXPECT_EQ(sent_.back().round, RoundNumber(5));
  EXPECT_EQ(text_of(sent_.back()), "line of round 5\n");
}

TEST_F(LogFileServerTest, OldRoundsAreForgotten) {
  for (int64_t round = 1; round <= static_cast<int64_t>(limits::kLogRounds) + 2; ++round)
    begin_round(round);
  EXPECT_EQ(ask(1, 0).round, RoundNumber(3));
}

TEST_F(LogFileServerTest, ReadsSoManyAtATime) {
  begin_round(1);
  for (size_t i = 0; i <= limits::kLogReadsAtOnce; ++i) server_.on_request(request(1, 1));
  ASSERT_EQ(sent_.size(), 1U) << "the loop has not taken any result yet";
  EXPECT_EQ(sent_.front().why, "the agent reads for others; ask again");
  run_until(limits::kLogReadsAtOnce + 1);
  EXPECT_EQ(ask(1, 1).why, "");
}

TEST_F(LogFileServerTest, TheEndWaitsForAReaderThatHasNotTheLastLines) {
  begin_round(1);
  ask(1, 1);
  server_.on_round_ended();
  server_.when_read([this] { is_over_ = true; });
  EXPECT_FALSE(is_over_);
  const LogReply last = ask(1, 1);
  EXPECT_TRUE(last.is_job_over && last.is_ended);
  EXPECT_TRUE(is_over_);
}

TEST_F(LogFileServerTest, TheEndWaitsForNoneWithoutReaders) {
  begin_round(1);
  server_.on_round_ended();
  server_.when_read([this] { is_over_ = true; });
  EXPECT_TRUE(is_over_);
}

TEST_F(LogFileServerTest, TheEndWaitsNoLongerWithoutACoordinator) {
  begin_round(1);
  ask(1, 1);
  server_.on_round_ended();
  server_.when_read([this] { is_over_ = true; });
  EXPECT_FALSE(is_over_);
  server_.on_disconnected();
  EXPECT_TRUE(is_over_);
}

TEST_F(LogFileServerTest, AReaderThatAsksNoMoreDelaysTheEndForALimitedTime) {
  begin_round(1);
  ask(1, 1);
  server_.on_round_ended();
  const Instant before = boot_now();
  server_.when_read([this] { is_over_ = true; });
  loop_.restart();
  while (!is_over_ && boot_now() < before + std::chrono::seconds(100))
    loop_.run_one_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(is_over_);
  EXPECT_LT(boot_now() - before, limits::kLogEndWait * 10);
}

}  // namespace
}  // namespace cpprun
