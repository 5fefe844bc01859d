// The real disk under snapshots: direct I/O, rejected files, locks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/saves.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun::snapshot_files {
namespace {

using test::TempFolder;
using testing::HasSubstr;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Tries direct writes on both file systems: one may refuse them.
class SnapshotDisk : public testing::TestWithParam<const char*> {
 protected:
  FileLayer& files_ = real_files();
  const TempFolder folder_{GetParam()};
  const std::string path_ = folder_.path() + "/file";
};
INSTANTIATE_TEST_SUITE_P(Places, SnapshotDisk, testing::Values("", "/dev/shm"),
                         [](const auto& place) {
                           return std::string(place.param[0] == '\0' ? "Temp" : "Memory");
                         });

TEST_P(SnapshotDisk, WritesAnyAddressAndOffset) {
  std::string bytes(5 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  std::string wanted;
  Result<std::unique_ptr<File>> file = files_.create(path_);
  ASSERT_TRUE(file.ok()) << file.error().text;
  ASSERT_TRUE((*file)->reserve(24 << 20).ok());
  const auto write = [&](size_t at, size_t from, size_t size) {
    const auto part = archive::bytes_of(bytes).subspan(from, size);
    ASSERT_TRUE((*file)->write_at(at, part).ok());
    wanted.resize(std::max(wanted.size(), at + size));
    wanted.replace(at, size, bytes, from, size);
  };
  write(0, 0, bytes.size());                 // the alignment of std::string
  write(8 << 20, 1, (4 << 20) + 4097);       // an odd address, and a tail
  write((16 << 20) + 5, 3, (1 << 20) + 17);  // an odd offset
  write(20 << 20, 0, 10);
  ASSERT_TRUE((*file)->sync().ok());
  EXPECT_EQ(*(*file)->size(), size_t{24} << 20);
  std::string found = content(path_);
  found.resize(wanted.size());
  EXPECT_TRUE(found == wanted);
  std::string back(100, '\0');
  const auto into = std::as_writable_bytes(std::span(back));
  ASSERT_TRUE((*file)->read_at(8 << 20, into).ok());
  EXPECT_EQ(back, bytes.substr(1, 100));
  EXPECT_THAT((*file)->read_at((24 << 20) - 50, into).error().text, HasSubstr("was cut short"));
}

// Storages with their headers, of which the third has no whole blocks; more than a write takes;
// small ones; a gap.
TEST_P(SnapshotDisk, WritesNeighboursTogether) {
  const size_t biggest = 70 << 20;
  const std::unique_ptr<char, void (*)(void*)> memory(
      static_cast<char*>(std::aligned_alloc(archive::kBlock, biggest)), &std::free);
  for (size_t i = 0; i < biggest; ++i) memory.get()[i] = static_cast<char>(i * 2654435761U >> 13);
  const std::string header(archive::kBlock, 'h'), small(192, 's');
  std::vector<archive::Piece> pieces;
  uint64_t at = archive::kBlock;
  const auto put = [&](const char* bytes, size_t size) {
    pieces.push_back({at, archive::bytes_of({bytes, size})});
    at += size;
  };
  for (const size_t size : {size_t{1} << 20, size_t{65536}, size_t{65636}, biggest}) {
    put(header.data(), header.size());
    put(memory.get(), size);
    at = (at + archive::kBlock - 1) / archive::kBlock * archive::kBlock;
  }
  put(memory.get() + 1, 9 << 20);  // more than the aligned copies take
  for (int i = 0; i < 3000; ++i) put(small.data(), static_cast<size_t>(i % 193));
  at += 5000;
  put(small.data(), 3);
  Result<std::unique_ptr<File>> file = files_.create(path_);
  ASSERT_TRUE(file.ok()) << file.error().text;
  ASSERT_TRUE((*file)->write_all(pieces).ok());
  ASSERT_TRUE((*file)->write_all({}).ok());
  std::string wanted(at, '\0');
  for (const archive::Piece& piece : pieces) {
    std::memcpy(wanted.data() + piece.offset, piece.bytes.data(), piece.bytes.size());
  }
  EXPECT_TRUE(content(path_) == wanted);
}

TEST_P(SnapshotDisk, OpensOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(files_.open_to_read(path_).error().text, HasSubstr("is no file"));
  EXPECT_THAT(files_.open_to_read(folder_.path()).error().text, HasSubstr("but a folder"));
  EXPECT_THAT(files_.open_to_read(path_ + "x").error().text, HasSubstr("check the path"));
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "-link").c_str()), 0);
  EXPECT_THAT(files_.open_to_read(path_ + "-link").error().text, HasSubstr("not followed"));
  EXPECT_TRUE(files_.open_to_read(path_ + "-link", /*follows_links=*/true).ok());
  EXPECT_FALSE(files_.open_to_write(path_ + "-link").ok());
  EXPECT_EQ(files_.info(path_ + "-link")->kind, EntryKind::Other);
  EXPECT_THAT(files_.create(path_).error().text, HasSubstr("File exists"));
}

TEST_P(SnapshotDisk, AFullDiskIsReportedWithTheCure) {
  const pid_t child = ::fork();  // the limit lasts until the process ends
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Result<std::unique_ptr<File>> file = files_.create(path_);
    const std::string bytes(3 << 20, 'x');
    Status wrote = (*file)->write_at(0, archive::bytes_of(bytes));
    const bool is_reported = !wrote.ok() && wrote.error().text.starts_with("can't write " + path_);
    ::_exit(is_reported && !(*file)->reserve(3 << 20).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(SnapshotDisk, ALockLivesAsLongAsItsWriter) {
  ASSERT_TRUE(files_.make_folder(path_).ok());
  EXPECT_EQ(files_.lock_state(path_), LockState::Free);
  {
    const std::unique_ptr<Lock> one = files_.lock_shared(path_), two = files_.lock_shared(path_);
    ASSERT_TRUE(one != nullptr && two != nullptr);
    EXPECT_EQ(files_.lock_state(path_), LockState::Held);
  }
  EXPECT_EQ(files_.lock_state(path_), LockState::Free);
  EXPECT_EQ(files_.lock_state(path_ + "x"), LockState::Unknown);
}

TEST_P(SnapshotDisk, AWriterGetsItsLockAlsoWhileASweepLooksAtIt) {
  ASSERT_TRUE(files_.make_folder(path_).ok());
  int sweep = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(sweep, LOCK_EX | LOCK_NB), 0);
  std::thread end_of_sweep([sweep] {
    std::promise<void> never;  // so long that the first attempt fails
    never.get_future().wait_for(std::chrono::milliseconds(50));
    ::close(sweep);
  });
  const std::unique_ptr<Lock> lock = files_.lock_shared(path_);
  end_of_sweep.join();
  EXPECT_NE(lock, nullptr);
  EXPECT_EQ(files_.lock_state(path_), LockState::Held);
  // A sweep that is suspended does not hold the writer.
  sweep = ::open((folder_.path()).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(sweep, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(files_.lock_shared(folder_.path()), nullptr);
  ::close(sweep);
}

TEST_P(SnapshotDisk, KeepsYoungDrafts) {
  {
    Result<Draft> draft = Draft::create(files_, folder_.path(), 1, make_nonce());
    ASSERT_TRUE(draft.ok());
  }
  EXPECT_TRUE(sweep_drafts(files_, folder_.path()).removed.empty());
  const std::vector<Entry> left = *files_.list(folder_.path());
  ASSERT_EQ(left.size(), 1U);
  const std::string path = folder_.path() + "/" + left[0].name;
  const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  EXPECT_THAT(sweep_drafts(files_, folder_.path()).removed, testing::ElementsAre(path));
}

TEST_P(SnapshotDisk, ReplacesASnapshotOfTheSameStep) {
  const std::string dir = folder_.path() + "/a/b";
  ASSERT_TRUE(test::save(files_, dir, 5, 'a').ok());
  ASSERT_TRUE(test::save(files_, dir, 5, 'b').ok());
  EXPECT_EQ(test::newest(files_, dir), "5b");
  EXPECT_EQ(files_.list(dir)->size(), 1U);
}

}  // namespace
}  // namespace cpprun::snapshot_files
