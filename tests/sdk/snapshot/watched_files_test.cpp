// A file system that does not answer: the training does not wait for it.
#include "cpprun/snapshot/save/watched_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cpprun/snapshot/snapshot_writer.hpp"
#include "cpprun/snapshot/tracked_objects.hpp"
#include "tests/support/memory_files.hpp"

namespace cpprun::snapshot {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// A file server that takes no request until answer().
class HangingFiles {
 public:
  HangingFiles() {
    files.before_change = [this] { answered_.wait(); };
  }
  void answer() { may_answer_.set_value(); }

  test::MemoryFiles files;

 private:
  std::promise<void> may_answer_;
  std::shared_future<void> answered_ = may_answer_.get_future().share();
};

TEST(WatchedFiles, OtherThreadsSeeACallThatIsNotAnswered) {
  HangingFiles hanging;
  WatchedFiles watched(hanging.files);
  EXPECT_EQ(watched.unanswered(Duration(0)), "");
  std::thread caller([&] { EXPECT_TRUE(watched.make_folder("runs")); });
  while (watched.unanswered(Duration(0)) != "runs") std::this_thread::yield();
  EXPECT_EQ(watched.unanswered(std::chrono::hours(1)), "");
  hanging.answer();
  caller.join();
  EXPECT_EQ(watched.unanswered(Duration(0)), "");
  EXPECT_FALSE(watched.make_folder("runs"));  // errors pass
}

TEST(WatchedFiles, ALongWriteIsSeveralCallsThatEndAtBlocks) {
  constexpr size_t kMost = 2 * archive::kBlock;
  test::MemoryFiles files;
  WatchedFiles watched(files, kMost);
  std::string content(5 * archive::kBlock + 123, '\0');
  std::iota(content.begin(), content.end(), '\0');
  const auto bytes = archive::bytes_of(content);
  const std::vector<archive::Piece> pieces{{0, bytes.first(100)}, {100, bytes.subspan(100)}};
  const auto file = watched.create("file");
  ASSERT_TRUE(file);
  const size_t before = files.operations();
  EXPECT_TRUE((*file)->write_all(pieces));
  EXPECT_EQ(files.content("file"), content);
  // The first piece, and three parts of the second one.
  EXPECT_EQ(files.operations() - before, 4u);
}

TEST(SnapshotWriter, DoesNotWaitForAFileSystemThatDoesNotAnswer) {
  HangingFiles hanging;
  const SnapshotLocation location{"runs", false};
  const SnapshotComm comm = SnapshotComm::here();
  FolderGroup group(location, comm);
  InMemorySnapshot memory("a test of a file system that does not answer", true);
  SnapshotWriter writer(location, comm, group, memory, {}, hanging.files, milliseconds(100));
  ASSERT_EQ(writer.place_for(1, true), SavePlace::Disk);
  writer.start({}, 1, 0, false, true);
  CaptureStderr();
  EXPECT_FALSE(writer.wait());
  EXPECT_FALSE(writer.wait());
  EXPECT_FALSE(writer.end());
  const std::string text = GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("the file system of runs has not answered for 0 s, so the program"));
  EXPECT_EQ(text.find("cpprun:"), text.rfind("cpprun:"));
  EXPECT_EQ(writer.last_path(), "");
  EXPECT_NE(writer.place_for(2, true), SavePlace::Disk);
  hanging.answer();
  while (!writer.wait()) std::this_thread::yield();
  EXPECT_EQ(writer.last_path(), "runs/step-1");
  EXPECT_TRUE(writer.end());
}

}  // namespace
}  // namespace cpprun::snapshot
