// The pure parts of snapshots: names, shards, choice, intervals, reports of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/snapshot/poll_schedule.hpp"
#include "cpprun/snapshot/resume_choice.hpp"
#include "cpprun/snapshot/save/shard_plan.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/names.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(SnapshotNames, StripsOnlyAPrefixThatAllNamesHave) {
  EXPECT_THAT(
      strip_prefix({"module.net.weight", "module.module_list.0.weight", "module.submodule.bias"},
                   "module."),
      ElementsAre("net.weight", "module_list.0.weight", "submodule.bias"));
  EXPECT_THAT(strip_prefix({"module.a", "step"}, "module."), ElementsAre("module.a", "step"));
}

TEST(SnapshotNames, FindsNamesInsideWrappers) {
  const std::set<std::string> wanted{"a", "b.c"};
  for (const std::string prefix :
       {"", "module.", "module.module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
    EXPECT_THAT(align({prefix + "a", prefix + "b.c"}, wanted),
                ElementsAre(Pair("a", prefix + "a"), Pair("b.c", prefix + "b.c")))
        << prefix;
  }
  EXPECT_THAT(align({"module.a", "module.b._orig_mod.c"}, wanted),
              ElementsAre(Pair("a", "module.a"), Pair("b.c", "module.b._orig_mod.c")));
}

TEST(SnapshotNames, AModelMayHaveAChildCalledModule) {
  EXPECT_THAT(align({"module.a"}, {"module.a"}), ElementsAre(Pair("module.a", "module.a")));
  EXPECT_THAT(align({"module.module.a"}, {"module.a"}),
              ElementsAre(Pair("module.a", "module.module.a")));
  EXPECT_THAT(align({"submodule.a"}, {"a"}), IsEmpty());
  EXPECT_THAT(align({"my_orig_mod.a"}, {"a", "mya"}), IsEmpty());
}

class NoStorages final : public Storages {
 public:
  Status read(const std::string&, uint64_t, std::span<std::byte>) const override { return {}; }
};

// In memory a rank's own state is beside the shared state; in the single file it is inside.
TEST(SnapshotEntries, FindsPerRankEntriesInMemory) {
  for (const bool is_single : {false, true}) {
    int64_t restored = 0;
    Tracked own;
    own.name = "random";
    own.is_per_rank = true;
    own.save = [](Capture&) { return pickle::Value(int64_t{42}); };
    own.load = [&](const pickle::Value& value, const Storages&) {
      restored = *value.get_if<int64_t>();
    };
    const std::vector<Tracked> tracked{own};
    const Contents contents = capture(tracked, is_single, 1, {.step = 3});
    Loaded in_memory;
    for (const Content& each : contents.shared) {
      in_memory[each.name] = {each.value, std::make_shared<NoStorages>()};
    }
    in_memory[contents.own.name] = {contents.own.value, std::make_shared<NoStorages>()};
    EXPECT_TRUE(apply(tracked, is_single, 1, in_memory).missing.empty()) << is_single;
    EXPECT_EQ(restored, 42) << is_single;
  }
}

uint64_t of_piece(const std::vector<ShardRange>& parts, int piece) {
  uint64_t bytes = 0;
  for (const ShardRange& part : parts) bytes += part.piece == piece ? part.bytes : 0;
  return bytes;
}

TEST(SnapshotShards, CoverTheBytesInEqualParts) {
  const std::vector<ShardSource> storages{
      {"a", 10 << 20}, {"b", 4}, {"c", 0}, {"d", 1'000'001}, {"e", 5'000}};
  for (const int pieces : {1, 2, 3, 7}) {
    const auto parts = plan_shards(storages, pieces);
    std::map<std::string, uint64_t> seen;
    for (const ShardRange& part : parts) {
      EXPECT_EQ(part.from, seen[part.storage]);  // in sequence
      EXPECT_EQ(part.from % archive::kBlock, 0U);
      seen[part.storage] += part.bytes;
    }
    for (const auto& each : storages) EXPECT_EQ(seen.at(each.name), each.bytes);
    const uint64_t total = (10 << 20) + 4 + 1'000'001 + 5'000;
    for (int i = 0; i < pieces; ++i) {
      EXPECT_NEAR(static_cast<double>(of_piece(parts, i)), static_cast<double>(total) / pieces,
                  70'000);
    }
  }
}

TEST(SnapshotShards, RankZeroWritesDifferingTensors) {
  const auto parts = plan_shards({{"w", 1 << 20}, {"mean", 1 << 20, true}}, 2);
  EXPECT_THAT(parts,
              ElementsAre(ShardRange{"w", 0, 1 << 19, 0}, ShardRange{"w", 1 << 19, 1 << 19, 1},
                          ShardRange{"mean", 0, 1 << 20, 0}));
}

// How many ranks of each node keep each piece, and how many ranks write it.
void expect_each_node_keeps_all(const Group& group) {
  const int pieces = group.share_of(0, true).pieces;
  std::vector<int> written(static_cast<size_t>(pieces), 0);
  for (const std::vector<int>& node : group.nodes) {
    for (int piece = 0; piece < pieces; ++piece) {
      EXPECT_EQ(std::ranges::count_if(
                    node, [&](int rank) { return group.share_of(rank, true).keeps(piece); }),
                1)
          << "piece " << piece;
    }
    for (const int rank : node) {
      const Share share = group.share_of(rank, true);
      if (share.written < 0) continue;
      EXPECT_TRUE(share.keeps(share.written)) << "rank " << rank;
      ++written[static_cast<size_t>(share.written)];
      if (!group.is_single_file) {
        EXPECT_EQ(group.writers()[static_cast<size_t>(share.written)], rank);
      }
    }
  }
  EXPECT_THAT(written, Each(1));
}

TEST(SnapshotGroup, EachNodeKeepsAllPiecesAndOneRankWritesEach) {
  for (const bool is_single_file : {false, true}) {
    expect_each_node_keeps_all({{0}, {0}, {{0}}, is_single_file});
    expect_each_node_keeps_all({{0, 1, 2}, {0}, {{0, 1, 2}}, is_single_file});
    expect_each_node_keeps_all({{0, 1, 2, 3, 4, 5}, {0}, {{0, 1}, {2, 3}, {4, 5}}, is_single_file});
  }
  const Group uneven{{0, 1, 2}, {0}, {{0, 1}, {2}}, false};
  EXPECT_FALSE(uneven.serves_memory());
  for (const int rank : {0, 1, 2}) {
    const Share share = uneven.share_of(rank, true);
    EXPECT_EQ((std::vector{share.pieces, share.kept_from, share.kept_to, share.written}),
              (std::vector{3, rank, rank + 1, rank}));
  }
  const Group even{{0, 1, 2, 3}, {0}, {{0, 1}, {2, 3}}, false};
  EXPECT_THAT(even.writers(), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(even.share_of(2, false).kept_from, 1) << "only what it writes";
  EXPECT_EQ(even.share_of(2, false).kept_to, 2);
}

Candidate disk(int64_t step, std::string why = "") {
  const std::string name = "step-" + std::to_string(step);
  return {Candidate::Where::Folder, step, why.empty() ? name : "", std::move(why), name};
}
Candidate memory(int64_t step, std::string id = "0/2") {
  return {Candidate::Where::InMemorySnapshot, step, std::move(id), "", "memory"};
}

TEST(SnapshotChoice, ChoosesTheNewestCommonOne) {
  const Common found = common({{disk(3), disk(2), disk(1)}, {disk(2), disk(1)}});
  EXPECT_THAT(found.loadable, ElementsAre(disk(2), disk(1)));
  EXPECT_THAT(found.damaged, IsEmpty());
}

TEST(SnapshotChoice, ChoosesMemoryIfItIsAsNewAsTheDisk) {
  EXPECT_EQ(common({{memory(3), disk(3)}, {memory(3), disk(3)}}).loadable[0], memory(3));
  EXPECT_THAT(common({{memory(2), disk(3)}, {memory(2), disk(3)}}).loadable, ElementsAre(disk(3)));
  // A copy of the same step from another round is no copy of this one.
  EXPECT_THAT(common({{memory(4, "7/2"), disk(3)}, {memory(4, "8/2"), disk(3)}}).loadable,
              ElementsAre(disk(3)));
}

TEST(SnapshotChoice, TheLaunchersChoicePrecedesTheFolder) {
  Candidate chosen = disk(2);
  chosen.where = Candidate::Where::Chosen;
  const Common found = common({{chosen, disk(3), disk(2)}});
  EXPECT_THAT(found.loadable, ElementsAre(chosen, disk(3), disk(2)));
}

TEST(SnapshotChoice, NamesTheRankWithADamagedOne) {
  const Common found = common({{disk(3), disk(2)}, {disk(3, "cut short"), disk(2)}});
  EXPECT_THAT(found.loadable, ElementsAre(disk(2)));
  ASSERT_EQ(found.damaged.size(), 1U);
  EXPECT_EQ(found.damaged[0].why, "rank 1: cut short");
}

TEST(SnapshotChoice, AMessageNamesSomeOfManyDamagedOnes) {
  Candidates many;
  for (int64_t step = 3000; step > 0; --step) many.push_back(disk(step, "cut short"));
  const Common found = common({many, many});
  ASSERT_EQ(found.damaged.size(), 3000U);
  const std::string text = damaged_text(found.damaged, "step-0");
  EXPECT_THAT(text, testing::StartsWith("step-3000 can't be used (rank 0: cut short); step-2999"));
  EXPECT_THAT(text, testing::EndsWith("; nor can 2992 others; fell back 3000 to step-0"));
  EXPECT_LT(text.size(), 1000U);
  EXPECT_EQ(damaged_text({disk(3, "bad")}, ""),
            "step-3 can't be used (bad); there is no other: training begins anew");
}

TEST(SnapshotChoice, ListsSurviveEncoding) {
  const Candidates all{memory(5), disk(4), disk(3, "bad")};
  EXPECT_EQ(decode(encode(all)).value(), all);
  EXPECT_FALSE(decode("nonsense").ok());
}

TEST(SnapshotPolls, EstimatesTheStepOfATime) {
  PollSchedule polls;
  EXPECT_TRUE(polls.is_due(0));
  polls.set_next_poll(polls.next_poll(0, 0, 1));
  EXPECT_TRUE(polls.is_due(1));
  EXPECT_EQ(polls.next_poll(1, 0.1, 1), 11);  // 0.1 s a step
  EXPECT_EQ(polls.next_poll(11, 1.1, 0.05), 12);
}

TEST(SnapshotReport, OutcomesAndShardsSurviveEncoding) {
  EXPECT_EQ(decode_outcome(encode(Result<std::string>("x")), 3).value(), "x");
  const auto bad = decode_outcome(encode(Status(Error{ErrorKind::System, "disk full"})), 3);
  EXPECT_EQ(bad.error().text, "rank 3: disk full");
  EXPECT_EQ(decode_outcome(encode(Status(bad.error())), 0).error().text, "rank 3: disk full");
  const Done done{{{1, 0xFFFFFFFF}, {}}, 1ULL << 40, 7, 9};
  const Done back = decode_done(encode(done)).value();
  EXPECT_EQ(back.parts, done.parts);
  EXPECT_EQ(back.own_bytes, done.own_bytes);
  EXPECT_FALSE(decode_done("x").ok());
}

}  // namespace
}  // namespace cpprun::snapshot
