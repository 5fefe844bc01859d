// The files of a round, made on the I/O thread.
#include "agent/daemon/round_files.hpp"

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "common/machine/clock.hpp"
#include "tests/support/blocked_io.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

namespace fs = std::filesystem;

class RoundFilesTest : public testing::Test {
 protected:
  RoundFilesTest() {
    config_.workers.nproc = 2;
    config_.logs.redirects.resize(2);
    config_.logs.tee = {StreamBits{3}, StreamBits{3}};
    Result<LogFolder> made = LogFolder::make(base_.path(), "job", "/tmp");
    EXPECT_TRUE(made.ok());
    if (made) folder_ = std::move(*made);
  }

  void run_until_ready(int times) {
    const Instant end = boot_now() + std::chrono::seconds(100);
    loop_.restart();
    while (ready_ < times && boot_now() < end) loop_.run_one_for(std::chrono::milliseconds(50));
    EXPECT_EQ(ready_, times);
  }

  void run_what_is_posted() {
    loop_.restart();
    loop_.poll();
  }

  boost::asio::io_context loop_{1};
  const TemporaryFolder base_;
  AgentConfig config_;
  LogFolder folder_;
  int ready_ = 0;
  BlockedIo blocked_;
  RoundFiles files_{loop_, *blocked_.io, config_, folder_, [this] { ++ready_; }};
};

TEST_F(RoundFilesTest, MakesTheFolderAndOpensTheFiles) {
  blocked_.release();
  files_.prepare(0, 1);
  EXPECT_EQ(ready_, 0) << "the loop does not make them";
  run_until_ready(1);
  EXPECT_TRUE(files_.made() && files_.opened());
  EXPECT_EQ(files_.files().size(), 4U);
  EXPECT_TRUE(files_.files().contains(folder_.stream_file(1, "stderr.log")));
  files_.release();
  EXPECT_TRUE(files_.files().empty());
}

TEST_F(RoundFilesTest, OnlyTheNewestRoundIsAnswered) {
  files_.prepare(0, 1);
  files_.prepare(0, 2);
  blocked_.release();
  run_until_ready(1);
  run_what_is_posted();
  EXPECT_EQ(ready_, 1);
  EXPECT_TRUE(fs::exists(folder_.run_folder() + "/attempt_0/1/stdout.log"));
}

TEST_F(RoundFilesTest, ARunWithoutItsFolderStartsWithoutFiles) {
  blocked_.release();
  ASSERT_TRUE(blocked_.io->wait(std::chrono::seconds(60)));
  fs::remove_all(folder_.run_folder());
  files_.prepare(0, 1);
  run_until_ready(1);
  EXPECT_FALSE(files_.made());
  EXPECT_TRUE(files_.opened());
  EXPECT_TRUE(folder_.lacks_attempt());
}

TEST_F(RoundFilesTest, ARoundStartsWithoutFilesWhenTheFileSystemDoesNotAnswer) {
  files_.prepare(0, 1);
  run_until_ready(1);
  EXPECT_FALSE(files_.made());
  EXPECT_NE(files_.made().error().text.find("does not answer"), std::string::npos);
  EXPECT_TRUE(files_.opened() && files_.files().empty() && folder_.lacks_attempt());
  files_.prepare(1, 2);
  EXPECT_EQ(ready_, 2) << "the next round does not wait again";
  blocked_.release();
  ASSERT_TRUE(blocked_.io->wait(std::chrono::seconds(60)));
  run_what_is_posted();
  EXPECT_EQ(ready_, 2) << "a late answer does not count";
  files_.prepare(2, 3);
  run_until_ready(3);
  EXPECT_TRUE(files_.made());
}

TEST_F(RoundFilesTest, ARoundThatTheIoThreadHasNoRoomForDoesNotSpoilTheNext) {
  while (blocked_.io->post([] {})) continue;
  files_.prepare(0, 1);
  EXPECT_EQ(ready_, 1) << "it starts at once, without files";
  EXPECT_FALSE(files_.made());
  EXPECT_NE(files_.made().error().text.find("too many"), std::string::npos);
  blocked_.release();
  ASSERT_TRUE(blocked_.io->wait(std::chrono::seconds(60)));
  files_.prepare(1, 2);
  run_until_ready(2);
  EXPECT_TRUE(files_.made());
}

}  // namespace
}  // namespace cpprun::test
