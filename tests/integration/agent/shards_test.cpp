// Shards in memory that one agent sends another (--snapshot-replicas): the plan, the protocol, and
// real replicas over real sockets.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "agent/daemon/snapshots/replica_transfer.hpp"
#include "tests/support/huge_pages.hpp"
#include "tests/support/transfer_fixture.hpp"

namespace cpprun::test {
namespace {

using replica_protocol::ShardNamespace;
using snapshot_files::ArenaSlots;

constexpr uint64_t kMiB = 1 << 20;

ShardId shard(int index, int64_t step, uint64_t number = 1, int rank = -1, int64_t round = 1) {
  ShardId name;
  name.index = index;
  name.label = {step, round, rank < 0 ? index : rank, 4};
  name.number = number;
  name.bytes = 100;
  return name;
}

std::vector<int64_t> steps_of(const std::vector<ShardId>& shards) {
  std::vector<int64_t> steps;
  for (const ShardId& each : shards) steps.push_back(each.label.step);
  return steps;
}

TEST(ReplicaPlan, ChoosesTheNewestCommonSave) {
  EXPECT_TRUE(shards_to_copy({}, {}).empty());
  const std::vector<ShardId> theirs = {shard(0, 10), shard(0, 20, 2), shard(1, 10)};
  EXPECT_EQ(steps_of(shards_to_copy(theirs, {})), (std::vector<int64_t>{10, 10}));
  EXPECT_TRUE(shards_to_copy(theirs, shards_to_copy(theirs, {})).empty()) << "they are here";
  std::vector<ShardId> grown = theirs;
  grown.push_back(shard(1, 20, 2));
  EXPECT_EQ(steps_of(shards_to_copy(grown, shards_to_copy(theirs, {}))),
            (std::vector<int64_t>{20, 20}));
}

TEST(ReplicaPlan, ALaterRoundIsNewerEvenAtAnEarlierStep) {
  const std::vector<ShardId> theirs = {shard(0, 30, 1, 0, 1), shard(0, 20, 2, 0, 2)};
  EXPECT_EQ(steps_of(shards_to_copy(theirs, {})), std::vector<int64_t>{20});
}

TEST(ReplicaPlan, TakesBackTheShardsOfTheseRanks) {
  const std::vector<ShardId> replicas = {shard(0, 20, 2, 2), shard(1, 20, 2, 3), shard(0, 10, 1, 2),
                                         shard(1, 10, 1, 3)};
  const auto back = shards_to_restore(replicas, {2, 2, 4});
  EXPECT_EQ(steps_of(back), (std::vector<int64_t>{20, 20}));
  EXPECT_EQ(back[0].index, 0);
  EXPECT_EQ(back[1].label.rank, 3);
  EXPECT_TRUE(shards_to_restore(replicas, {1, 2, 4}).empty()) << "rank 1 is not among them";
  EXPECT_TRUE(shards_to_restore(replicas, {2, 2, 8}).empty()) << "of another world";
}

TEST(ReplicaPlan, CountsSavesBetweenTwoReplicas) {
  EXPECT_EQ(left_out({}, {shard(0, 10, 7)}), 0u);
  EXPECT_EQ(left_out({shard(0, 10, 7)}, {shard(0, 20, 8)}), 0u);
  EXPECT_EQ(left_out({shard(0, 10, 7)}, {shard(0, 40, 10)}), 2u);
  EXPECT_EQ(left_out({shard(0, 10, 7)}, {shard(0, 10, 1)}), 0u) << "another memory";
}

TEST(ReplicaProtocol, EncodesAndDecodes) {
  const auto line = [](const replica_protocol::Request& request) {
    std::string text = encode(request);
    EXPECT_EQ(text.back(), '\n');
    text.pop_back();
    return text;
  };
  const auto names =
      replica_protocol::decode_request(line({"s3cret", ShardNamespace::Replicas, {}}));
  ASSERT_TRUE(names);
  EXPECT_EQ(names->secret, "s3cret");
  EXPECT_EQ(names->shard_namespace, ShardNamespace::Replicas);
  EXPECT_FALSE(names->shard);
  const auto one =
      replica_protocol::decode_request(line({"s3cret", ShardNamespace::Own, shard(1, 20, 3, 2)}));
  ASSERT_TRUE(one && one->shard);
  EXPECT_EQ(one->shard->label.rank, 2);
  EXPECT_EQ(one->shard->number, 3u);
  const auto all =
      replica_protocol::decode_shards(replica_protocol::encode({shard(0, 1), shard(1, 2)}));
  ASSERT_TRUE(all);
  EXPECT_EQ(steps_of(*all), (std::vector<int64_t>{1, 2}));
}

TEST(ReplicaProtocol, RejectsHostileInput) {
  for (const char* line :
       {"", "cpprun-shards-1", "cpprun-shards-1 s", "cpprun-shards-1 s all", "cpprun-shards-1  own",
        "cpprun-shards-1 s own 1", "cpprun-shards-1 s own 0 1 1 0 4 1 1 x",
        "cpprun-shards-1 s own 0 1 1 4 4 1 1 1", "cpprun-shards-1 s own -1 1 1 0 4 1 1 1",
        "cpprun-shards-1 s own 0 1 1 0 4 1 4294967296 1",
        "cpprun-shards-1 s own 0 1 1 0 4 1 1 99999999999999999",
        "cpprun-shards-1 s own 5000 1 1 0 4 1 1 1", "cpprun-shards-1 s own 0 1 1 0 4 1 1 1 1"}) {
    EXPECT_FALSE(replica_protocol::decode_request(line)) << line;
  }
  EXPECT_FALSE(replica_protocol::decode_shards("0 1 1 0 4 1 1 1")) << "cut off";
  std::string many;
  for (int i = 0; i < 2 * limits::kShardsPerNode + 1; ++i) many += "0 1 1 0 4 1 1 1\n";
  EXPECT_FALSE(replica_protocol::decode_shards(many));
}

std::shared_ptr<Arenas> arenas() {
  auto made = std::make_shared<Arenas>([] { return 64 * kMiB; });
  made->set_workers(2);
  return made;
}

// Writes shards as a worker leaves them.
void saves(Arenas& arenas, int index, int64_t step, const std::string& text, int64_t round = 1,
           uint32_t damage = 0) {
  const auto piece = arenas.want(index, ArenaSlots::arena_bytes(text.size()));
  ASSERT_TRUE(piece);
  void* at =
      ::mmap(nullptr, piece->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, piece->descriptor, 0);
  ASSERT_NE(at, MAP_FAILED);
  ArenaSlots slots({static_cast<std::byte*>(at), piece->bytes});
  const auto room = slots.begin({step, round, 2 + index, 4}, text.size());
  ASSERT_TRUE(room);
  std::memcpy(room->data(), text.data(), text.size());
  slots.staged(archive::crc32(*room) + damage);
  EXPECT_TRUE(slots.complete(step));
  ::munmap(at, piece->bytes);
}

std::string kept(const Arenas& arenas, int index, int64_t step) {
  for (const ShardId& name : shards_in(arenas)) {
    if (name.index != index || name.label.step != step) continue;
    Result<OpenShard> open = open_shard(arenas, name);
    if (!open) return open.error().text;
    std::string text(open->bytes, '\0');
    EXPECT_EQ(::read(open->file.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    return text;
  }
  return "nothing";
}

class ShardsBetweenAgents : public SnapshotsBetweenAgents {
 public:
  // The owner of the shards and its neighbour, each with a server.
  void both_serve() {
    fs::create_directories(there);
    for (auto* node : {&lost, &neighbour}) {
      auto made = SnapshotServer::start(there, "127.0.0.1", node->shard_arenas);
      ASSERT_TRUE(made) << made.error().text;
      node->server = std::move(*made);
      node->server->allow(kSecret);
    }
  }
  struct OneNode {
    ShardArenas shard_arenas{arenas(), arenas()};
    std::unique_ptr<SnapshotServer> server;
    ShardSource source() const { return {{"127.0.0.1", server->port()}, kSecret, 2s}; }
  };
  void replicas_until(int64_t step) {
    const auto copier = std::make_shared<CancelToken>();
    auto count = std::async(std::launch::async, [&] {
      return keep_replicas(lost.source(), *neighbour.shard_arenas.replicas, copier,
                           {[](int64_t) {}, [](const std::string&) {}});
    });
    const Instant until = boot_now() + 30s;
    while (kept(*neighbour.shard_arenas.replicas, 1, step) == "nothing" && boot_now() < until) {
      ASSERT_FALSE(cancel_token->wait(10ms));
    }
    copier->stop();
    counted = count.get();
  }

  OneNode lost, neighbour;
  ReplicaCount counted;
};

TEST_F(ShardsBetweenAgents, ANewNodeGetsTheMemoryOfTheLostOne) {
  both_serve();
  const std::string zero = text_of(3 * kMiB + 17), one = text_of(777);
  saves(*lost.shard_arenas.own, 0, 20, zero);
  saves(*lost.shard_arenas.own, 1, 20, one);
  replicas_until(20);
  EXPECT_EQ(counted.copied, 1u);
  lost.server.reset();
  const auto fresh = arenas();
  const RestoreResult back = restore_shards(neighbour.source(), {2, 2, 4}, *fresh, cancel_token);
  ASSERT_TRUE(back.status) << back.status.error().text;
  EXPECT_EQ(back.step, 20);
  EXPECT_EQ(kept(*fresh, 0, 20), zero);
  EXPECT_EQ(kept(*fresh, 1, 20), one);
  EXPECT_EQ(shards_in(*fresh)[0].label.round, 1) << "as in the others' shards of this save";
  EXPECT_EQ(restore_shards(neighbour.source(), {2, 2, 4}, *fresh, cancel_token).step, -1)
      << "it is here";
  EXPECT_EQ(restore_shards(neighbour.source(), {0, 2, 4}, *arenas(), cancel_token).step, -1)
      << "others'";
}

TEST(Shards, AreListedOnceEachArenaHasOne) {
  const auto made = arenas();
  saves(*made, 0, 20, "twenty");
  ASSERT_TRUE(made->want(1, ArenaSlots::arena_bytes(6)));
  EXPECT_TRUE(shards_in(*made).empty()) << "the other rank's is not complete";
  saves(*made, 1, 20, "twenty");
  EXPECT_EQ(steps_of(shards_in(*made)), (std::vector<int64_t>{20, 20}));
}

TEST_F(ShardsBetweenAgents, CopiesTheNewestAndCountsTheSkipped) {
  both_serve();
  for (int index : {0, 1}) saves(*lost.shard_arenas.own, index, 20, "twenty");
  replicas_until(20);
  for (int64_t step : {30, 40, 50}) {
    for (int index : {0, 1})
      saves(*lost.shard_arenas.own, index, step, "at " + std::to_string(step));
  }
  replicas_until(50);
  EXPECT_EQ(kept(*neighbour.shard_arenas.replicas, 0, 50), "at 50");
  EXPECT_EQ(kept(*neighbour.shard_arenas.replicas, 0, 20), "twenty")
      << "the one before stays beside it";
}

TEST(ShardWriter, WritesToHugePages) {
  const auto made = arenas();
  ShardId name = shard(0, 20);
  name.bytes = 8 * kMiB;
  Result<ShardWriter> writer = ShardWriter::make(*made, name);
  ASSERT_TRUE(writer) << writer.error().text;
  EXPECT_GE(kib_in_huge_pages(), 4096u) << "but for the ends of the range";
  EXPECT_TRUE(
      std::ranges::all_of(writer->bytes(), [](std::byte each) { return each == std::byte(); }));
}

TEST_F(ShardsBetweenAgents, RefusesAPeerWithoutTheSecret) {
  both_serve();
  for (int index : {0, 1}) saves(*neighbour.shard_arenas.replicas, index, 20, "private");
  port = neighbour.server->port();
  EXPECT_EQ(asks("cpprun-shards-1 wrong replicas"), "secret");
  EXPECT_TRUE(asks("cpprun-shards-1 " + std::string(kSecret) + " replicas").starts_with("bytes "));
  EXPECT_EQ(asks("cpprun-shards-1 " + std::string(kSecret) + " replicas 0 21 1 2 4 1 0 7"),
            "no it is not there any more");
  serves();  // an agent without --snapshot-replicas
  EXPECT_EQ(asks("cpprun-shards-1 " + std::string(kSecret) + " replicas"),
            "no it keeps no replicas in memory");
}

TEST_F(ShardsBetweenAgents, RejectsBytesWithAWrongChecksum) {
  both_serve();
  saves(*neighbour.shard_arenas.replicas, 0, 20, "right");
  saves(*neighbour.shard_arenas.replicas, 1, 20, "wrong", 1, 99);
  const auto fresh = arenas();
  const RestoreResult back = restore_shards(neighbour.source(), {2, 2, 4}, *fresh, cancel_token);
  ASSERT_FALSE(back.status);
  EXPECT_EQ(back.status.error().text, "the shard of rank 3 has another checksum");
  EXPECT_TRUE(shards_in(*fresh).empty()) << "not even the one that was right";
}

TEST_F(ShardsBetweenAgents, ADeadNeighbourDelaysOnlyBriefly) {
  both_serve();
  const ShardSource gone = neighbour.source();
  neighbour.server.reset();
  const auto waiting = std::async(std::launch::async, [&] {
    return restore_shards(gone, {2, 2, 4}, *arenas(), cancel_token);
  });
  EXPECT_EQ(waiting.wait_for(limits::kReplicaFetchTimeout + 10s), std::future_status::ready);
  cancel_token->stop();
}

}  // namespace
}  // namespace cpprun::test
