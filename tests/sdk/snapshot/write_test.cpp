// Ranks that write a snapshot together, each on its own thread, on disks in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cpprun/snapshot/save/writing.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/prune.hpp"
#include "tests/support/memory_files.hpp"

namespace cpprun::snapshot {
namespace {

using test::MemoryFiles;
using ::testing::ElementsAre;

Staged staged_at(int64_t step, int rank) {
  Staged staged;
  staged.step = step;
  StagedFile& model = staged.shared.emplace_back();
  model.name = snapshot_files::kModelName;
  model.value = pickle::Dict{};
  staged.own.name = snapshot_files::rank_file_name(rank);
  staged.own.value = pickle::Dict{};
  return staged;
}

// Two nodes with a rank each; each has its own folder and keeps one snapshot.
class FolderPerNode : public ::testing::Test {
 protected:
  bool save(int64_t step, const std::function<void()>& before_commit) {
    bool is_well = false;
    const std::atomic<bool> gives_up{false};
    const auto write = [&](int rank) {
      WriteContext context;
      context.files = &files_[rank];
      context.place = "runs";
      context.group = {{rank}, {0, 1}, {{rank}}};
      context.rank = rank;
      context.world = 2;
      context.keep = {.last = 1};
      context.request_commit = [&](int64_t) {
        before_commit();
        return Status();
      };
      StoreChannel channel(store_, std::to_string(step) + "/", gives_up);
      const bool wrote = write_folder(staged_at(step, rank), context, channel).ok();
      if (rank == 0) is_well = wrote;
    };
    std::thread other(write, 1);
    write(0);
    other.join();
    return is_well;
  }
  std::vector<int64_t> steps(int node) {
    std::vector<int64_t> all;
    const auto catalog = snapshot_files::scan(files_[node], "runs");
    for (const auto& each : catalog->complete) all.push_back(each.step);
    return all;
  }

  MemoryFiles files_[2];
  dist::Store store_ = dist::make_hash_store();
};

TEST_F(FolderPerNode, KeepsThePreviousSnapshotUntilAllNodesHaveTheNewOne) {
  ASSERT_TRUE(save(90, [] {}));
  // The second node's disk fails the last rename.
  EXPECT_FALSE(save(100, [&] { files_[1].inject(0, test::Fault::Fail); }));
  EXPECT_THAT(steps(0), ElementsAre(100, 90));
  EXPECT_THAT(steps(1), ElementsAre(90));
  EXPECT_TRUE(save(110, [] {}));
  EXPECT_THAT(steps(0), ElementsAre(110));
  EXPECT_THAT(steps(1), ElementsAre(110));
}

// Nothing has changed for long: only the lock shows a live writer.
TEST(SingleFile, CleanupSparesADraftThatIsBeingWritten) {
  MemoryFiles files;
  const std::atomic<bool> gives_up{false};
  WriteContext context;
  context.files = &files;
  context.place = "snapshot.pt";
  context.group = {{0}, {0}, {{0}}, true};
  context.request_commit = [&](int64_t) {
    EXPECT_THAT(snapshot_files::sweep_drafts(files, ".").removed, ::testing::IsEmpty());
    return Status();
  };
  StoreChannel channel({}, "", gives_up);
  const auto written = write_single_file(staged_at(1, 0), context, channel);
  EXPECT_TRUE(written.ok()) << written.error().text;
  EXPECT_EQ(files.lock_state("snapshot.pt"), snapshot_files::LockState::Free);
}

}  // namespace
}  // namespace cpprun::snapshot
