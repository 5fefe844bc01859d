// Memory that an agent keeps for its workers' snapshots: sizes, seals, release.
#include "agent/process/channel/arenas.hpp"
#include "common/machine/usable_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace cpprun {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ArenasTest : public testing::Test {
 protected:
  ArenasTest() { arenas_.set_workers(4); }

  static uint64_t size_of(int descriptor) {
    struct stat info {};
    EXPECT_EQ(::fstat(descriptor, &info), 0);
    return static_cast<uint64_t>(info.st_size);
  }
  static uint64_t touched(int descriptor) {
    struct stat info {};
    ::fstat(descriptor, &info);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }
  Arenas::Piece wanted(int rank, uint64_t bytes) {
    Result<Arenas::Piece> piece = arenas_.want(rank, bytes);
    EXPECT_TRUE(piece.ok()) << piece.error().text;
    return piece ? *piece : Arenas::Piece{};
  }

  Arenas arenas_{[] { return 64 * kMiB; }};
};

TEST_F(ArenasTest, GrowingAnArenaKeepsItsMemory) {
  EXPECT_EQ(wanted(0, 0).bytes, 0u);
  const Arenas::Piece piece = wanted(0, 3 * kMiB);
  EXPECT_GE(piece.bytes, 3 * kMiB);
  ASSERT_EQ(::pwrite(piece.descriptor, "kept", 4, kMiB), 4);
  const Arenas::Piece grown = wanted(0, 9 * kMiB);
  EXPECT_GE(grown.bytes, 9 * kMiB);
  EXPECT_EQ(wanted(0, 1).bytes, grown.bytes);
  EXPECT_EQ(wanted(0, 0).bytes, grown.bytes);
  char found[4];
  ASSERT_EQ(::pread(grown.descriptor, found, 4, kMiB), 4);
  EXPECT_EQ(std::memcmp(found, "kept", 4), 0);
  EXPECT_NE(wanted(1, 1).descriptor, grown.descriptor);
}

TEST_F(ArenasTest, EachWorkerGetsAtMostItsQuota) {
  EXPECT_EQ(wanted(0, 16 * kMiB).bytes, 16 * kMiB);
  for (uint64_t bytes : {16 * kMiB + 1, uint64_t{1} << 50, UINT64_MAX}) {
    Result<Arenas::Piece> refused = arenas_.want(1, bytes);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::Refused);
    EXPECT_NE(refused.error().text.find("may take 0.02 GiB"), std::string::npos)
        << refused.error().text;
  }
  EXPECT_EQ(wanted(1, 1).bytes, 2 * kMiB);
}

TEST_F(ArenasTest, UntouchedMemoryUsesNoPages) {
  const Arenas::Piece piece = wanted(0, 16 * kMiB);
  EXPECT_EQ(touched(piece.descriptor), 0u);
}

TEST_F(ArenasTest, WorkersCannotResizeAnArena) {
  const Arenas::Piece piece = wanted(0, kMiB);
  EXPECT_LT(::ftruncate(piece.descriptor, 0), 0);
  EXPECT_LT(::ftruncate(piece.descriptor, 64 * kMiB), 0);
  EXPECT_LT(::pwrite(piece.descriptor, "x", 1, 64 * kMiB), 0);
  EXPECT_LT(::fcntl(piece.descriptor, F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(size_of(piece.descriptor), 16 * kMiB);
}

TEST_F(ArenasTest, ViewsAreReadOnly) {
  const Arenas::Piece piece = wanted(2, kMiB);
  ASSERT_EQ(::pwrite(piece.descriptor, "kept", 4, 0), 4);
  Result<Arenas::View> view = arenas_.view(2);
  ASSERT_TRUE(view.ok()) << view.error().text;
  EXPECT_EQ(view->bytes, piece.bytes);
  char found[4];
  EXPECT_EQ(::pread(view->descriptor.get(), found, 4, 0), 4);
  EXPECT_LT(::pwrite(view->descriptor.get(), "x", 1, 0), 0);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, view->descriptor.get(), 0),
            MAP_FAILED);
  EXPECT_FALSE(arenas_.view(0).ok());
  EXPECT_FALSE(arenas_.view(-1).ok());
}

TEST(UsableMemory, IsAtMostTheMachinesMemory) {
  const auto machine = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_LE(usable_memory(), machine);
  EXPECT_GE(usable_memory(), 16 * kMiB);
}

}  // namespace
}  // namespace cpprun
