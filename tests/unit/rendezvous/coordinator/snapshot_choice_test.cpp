// The snapshot that a round begins with, and the sources of each fetch.
#include <gtest/gtest.h>

#include "common/limits/snapshots.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"

namespace cpprun::test {
namespace {

using Sources = std::vector<std::optional<size_t>>;
using control::SnapshotName;

std::string id(char c) { return std::string(32, c); }
SnapshotName named(int64_t step, char c) { return {step, id(c)}; }
SnapshotView node(std::vector<SnapshotName> complete, bool serves = true) {
  return {true, serves, std::move(complete)};
}
const SnapshotView kWithoutFolder{};
const auto kNothing = std::nullopt;

void expect_choice(const std::vector<SnapshotView>& nodes, const SnapshotName& snapshot,
                   const Sources& sources, const std::set<std::string>& damaged = {}) {
  const auto choice = choose_snapshot(nodes, damaged);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->snapshot.step, snapshot.step);
  EXPECT_EQ(choice->snapshot.id, snapshot.id);
  EXPECT_EQ(choice->sources, sources);
}

TEST(SnapshotChoice, NoSnapshotExists) {
  EXPECT_FALSE(choose_snapshot({}, {}));
  EXPECT_FALSE(choose_snapshot({kWithoutFolder, kWithoutFolder}, {}));
  EXPECT_FALSE(choose_snapshot({node({}), node({})}, {}));
}

TEST(SnapshotChoice, InASharedFolderTheNewestCounts) {
  const auto shared = node({named(30, 'c'), named(20, 'b')});
  expect_choice({shared, shared, shared}, named(30, 'c'), {kNothing, kNothing, kNothing});
  EXPECT_FALSE(choose_snapshot({shared, shared}, {})->is_fetched());
}

TEST(SnapshotChoice, ANodeWithoutAFolderDoesNotCount) {
  expect_choice({kWithoutFolder, node({named(5, 'a')}, false)}, named(5, 'a'),
                {kNothing, kNothing});
  EXPECT_FALSE(choose_snapshot({{false, true, {named(5, 'a')}}, node({})}, {}))
      << "what it names all the same is not looked at";
}

TEST(SnapshotChoice, ANewNodeFetches) {
  const auto old = node({named(20, 'b'), named(10, 'a')});
  expect_choice({old, node({})}, named(20, 'b'), {kNothing, 0});
  EXPECT_TRUE(choose_snapshot({old, node({})}, {})->is_fetched());
}

TEST(SnapshotChoice, ANewerSnapshotOfOneNodeIsFetched) {
  expect_choice({node({named(10, 'a')}), node({named(20, 'b'), named(10, 'a')})}, named(20, 'b'),
                {1, kNothing});
  expect_choice({node({named(20, 'b')}), node({named(20, 'b'), named(10, 'a')})}, named(20, 'b'),
                {kNothing, kNothing});
}

TEST(SnapshotChoice, FetchesOnlyFromServingNodes) {
  expect_choice({node({named(10, 'a')}), node({named(20, 'b'), named(10, 'a')}, false)},
                named(10, 'a'), {kNothing, kNothing});
  EXPECT_FALSE(choose_snapshot({node({}), node({named(20, 'b')}, false)}, {}));
}

TEST(SnapshotChoice, ADamagedOneIsNotFetchedAgain) {
  const std::vector<SnapshotView> nodes{node({named(20, 'b'), named(10, 'a')}), node({})};
  expect_choice(nodes, named(10, 'a'), {kNothing, 0}, {id('b')});
  EXPECT_FALSE(choose_snapshot(nodes, {id('a'), id('b')}));
  const std::vector<SnapshotView> alone{node({named(20, 'b')})};
  expect_choice(alone, named(20, 'b'), {kNothing}, {id('b')});
}

TEST(SnapshotChoice, OfOneStepTheMoreFrequentOneCounts) {
  expect_choice({node({named(20, 'c')}), node({named(20, 'b')}), node({named(20, 'b')})},
                named(20, 'b'), {1, kNothing, kNothing});
}

TEST(SnapshotChoice, FetchingNodesAreDistributedOverSources) {
  const auto has = node({named(7, 'a')});
  expect_choice({has, node({}), node({}), has, node({}), kWithoutFolder}, named(7, 'a'),
                {kNothing, 0, 3, kNothing, 0, kNothing});
}

TEST(SnapshotChoice, DuplicatesCountOnce) {
  expect_choice({node({named(9, 'b'), named(9, 'b')}), node({named(9, 'c')}, false)}, named(9, 'b'),
                {kNothing, 0});
}

TEST(SnapshotChoice, Sanity) {
  EXPECT_TRUE(are_sane(std::vector<SnapshotName>{}));
  EXPECT_TRUE(are_sane({named(0, 'a'), named(INT64_MAX / 2, '0')}));
  EXPECT_FALSE(are_sane({named(-1, 'a')}));
  EXPECT_FALSE(are_sane({named(INT64_MAX, 'a')}));
  EXPECT_FALSE(are_sane({named(1, 'A')}));
  EXPECT_FALSE(are_sane({{1, "../../etc"}}));
  EXPECT_FALSE(are_sane({{1, std::string(33, 'a')}}));
  EXPECT_FALSE(are_sane(std::vector<SnapshotName>(limits::kSnapshotsReported + 1, named(1, 'a'))));
}

// "of/at" of each node, by index; "-" is none.
std::string replicas(const std::vector<ReplicaView>& nodes) {
  std::string text;
  const auto name = [](std::optional<size_t> i) { return i ? std::to_string(*i) : "-"; };
  for (const ReplicaPeers& peers : choose_replicas(nodes)) {
    text += (text.empty() ? "" : " ") + name(peers.of) + "/" + name(peers.at);
  }
  return text;
}

TEST(ReplicaChoice, EachNodeKeepsTheReplicasOfItsPredecessor) {
  EXPECT_EQ(replicas({}), "");
  EXPECT_EQ(replicas({{true, false}}), "-/-") << "alone";
  EXPECT_EQ(replicas({{true, false}, {true, false}}), "1/- 0/-");
  EXPECT_EQ(replicas({{true, false}, {true, false}, {true, false}}), "2/- 0/- 1/-");
  EXPECT_EQ(replicas({{true, false}, {false, false}, {true, false}}), "2/- -/- -/-");
}

TEST(ReplicaChoice, ANewNodeSearchesAtItsSuccessor) {
  EXPECT_EQ(replicas({{true, false}, {true, true}, {true, false}}), "2/- 0/2 1/-");
  EXPECT_EQ(replicas({{true, false}, {true, true}}), "1/- 0/0");
  EXPECT_EQ(replicas({{true, false}, {true, true}, {true, true}}), "2/- 0/- 1/0");
  EXPECT_EQ(replicas({{true, true}, {true, true}}), "1/- 0/-") << "no node has anything";
  EXPECT_EQ(replicas({{true, false}, {true, true}, {false, false}}), "-/- 0/- -/-");
}

}  // namespace
}  // namespace cpprun::test
