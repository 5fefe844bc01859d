// Shares in memory that go from one agent to another (--snapshot-replicas): which are chosen, what
// is said, and real copies over real sockets.
#include <sys/mman.h>

#include <cstring>
#include <future>

#include "agent/daemon/snapshots/share_copy.hpp"
#include "tests/support/transfer_fixture.hpp"

namespace cpprun::test {
namespace {

using share_wire::Shelf;
using snapshot_files::ArenaSlots;

constexpr uint64_t kMiB = 1 << 20;

ShareName share(int index, int64_t step, uint64_t number = 1, int rank = -1, int64_t round = 1) {
  ShareName name;
  name.index = index;
  name.label = {step, round, rank < 0 ? index : rank, 4};
  name.number = number;
  name.bytes = 100;
  return name;
}

std::vector<int64_t> steps_of(const std::vector<ShareName>& shares) {
  std::vector<int64_t> steps;
  for (const ShareName& each : shares) steps.push_back(each.label.step);
  return steps;
}

// ---------------------------------------------------------------- which

TEST(SharePlan, TheNewestSaveThatAllHave) {
  EXPECT_TRUE(to_copy({}, {}).empty());
  const std::vector<ShareName> theirs = {share(0, 10), share(0, 20, 2), share(1, 10)};
  EXPECT_EQ(steps_of(to_copy(theirs, {})), (std::vector<int64_t>{10, 10}));
  EXPECT_TRUE(to_copy(theirs, to_copy(theirs, {})).empty()) << "they are here";
  std::vector<ShareName> grown = theirs;
  grown.push_back(share(1, 20, 2));
  EXPECT_EQ(steps_of(to_copy(grown, to_copy(theirs, {}))), (std::vector<int64_t>{20, 20}));
}

TEST(SharePlan, ALaterRoundIsNewerAtAnEarlierStep) {
  const std::vector<ShareName> theirs = {share(0, 30, 1, 0, 1), share(0, 20, 2, 0, 2)};
  EXPECT_EQ(steps_of(to_copy(theirs, {})), std::vector<int64_t>{20});
}

TEST(SharePlan, TakenBackIsWhatBelongsToTheseRanks) {
  const std::vector<ShareName> copies = {share(0, 20, 2, 2), share(1, 20, 2, 3), share(0, 10, 1, 2),
                                         share(1, 10, 1, 3)};
  const auto back = to_take_back(copies, {2, 2, 4});
  EXPECT_EQ(steps_of(back), (std::vector<int64_t>{20, 20}));
  EXPECT_EQ(back[0].index, 0);
  EXPECT_EQ(back[1].label.rank, 3);
  EXPECT_TRUE(to_take_back(copies, {1, 2, 4}).empty()) << "rank 1 is not among them";
  EXPECT_TRUE(to_take_back(copies, {2, 2, 8}).empty()) << "of another world";
  EXPECT_TRUE(has_own(copies, {2, 2, 4}));
}

TEST(SharePlan, SavesBetweenTwoCopiesAreCounted) {
  EXPECT_EQ(left_out({}, {share(0, 10, 7)}), 0u);
  EXPECT_EQ(left_out({share(0, 10, 7)}, {share(0, 20, 8)}), 0u);
  EXPECT_EQ(left_out({share(0, 10, 7)}, {share(0, 40, 10)}), 2u);
  EXPECT_EQ(left_out({share(0, 10, 7)}, {share(0, 10, 1)}), 0u) << "another memory";
}

// ---------------------------------------------------------------- words

TEST(ShareWire, WhatIsSaidIsUnderstood) {
  const auto line = [](const share_wire::Request& request) {
    std::string text = encode(request);
    EXPECT_EQ(text.back(), '\n');
    text.pop_back();
    return text;
  };
  const auto names = share_wire::decode_request(line({"s3cret", Shelf::Copies, {}}));
  ASSERT_TRUE(names);
  EXPECT_EQ(names->secret, "s3cret");
  EXPECT_EQ(names->shelf, Shelf::Copies);
  EXPECT_FALSE(names->share);
  const auto one = share_wire::decode_request(line({"s3cret", Shelf::Own, share(1, 20, 3, 2)}));
  ASSERT_TRUE(one && one->share);
  EXPECT_EQ(one->share->label.rank, 2);
  EXPECT_EQ(one->share->number, 3u);
  const auto all = share_wire::decode_shares(share_wire::encode({share(0, 1), share(1, 2)}));
  ASSERT_TRUE(all);
  EXPECT_EQ(steps_of(*all), (std::vector<int64_t>{1, 2}));
}

TEST(ShareWire, HostileWords) {
  for (const char* line :
       {"", "cpprun-shares-1", "cpprun-shares-1 s", "cpprun-shares-1 s all", "cpprun-shares-1  own",
        "cpprun-shares-1 s own 1", "cpprun-shares-1 s own 0 1 1 0 4 1 1 x",
        "cpprun-shares-1 s own 0 1 1 4 4 1 1 1", "cpprun-shares-1 s own -1 1 1 0 4 1 1 1",
        "cpprun-shares-1 s own 0 1 1 0 4 1 4294967296 1",
        "cpprun-shares-1 s own 0 1 1 0 4 1 1 99999999999999999",
        "cpprun-shares-1 s own 5000 1 1 0 4 1 1 1", "cpprun-shares-1 s own 0 1 1 0 4 1 1 1 1"}) {
    EXPECT_FALSE(share_wire::decode_request(line)) << line;
  }
  EXPECT_FALSE(share_wire::decode_shares("0 1 1 0 4 1 1 1")) << "cut off";
  std::string many;
  for (int i = 0; i < 2 * limits::kSharesPerNode + 1; ++i) many += "0 1 1 0 4 1 1 1\n";
  EXPECT_FALSE(share_wire::decode_shares(many));
}

// ---------------------------------------------------------------- real copies

std::shared_ptr<Arenas> arenas() {
  auto made = std::make_shared<Arenas>([] { return 64 * kMiB; });
  made->set_workers(2);
  return made;
}

// As a worker leaves it.
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
  for (const ShareName& name : shares_in(arenas)) {
    if (name.index != index || name.label.step != step) continue;
    Result<OpenShare> open = open_share(arenas, name);
    if (!open) return open.error().text;
    std::string text(open->bytes, '\0');
    EXPECT_EQ(::read(open->file.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    return text;
  }
  return "nothing";
}

class SharesBetweenAgents : public SnapshotsBetweenAgents {
 public:
  // The node whose shares are copied, and its neighbour, each with a server.
  void both_serve() {
    fs::create_directories(there);
    for (auto* node : {&lost, &neighbour}) {
      auto made = SnapshotServer::start(there, "127.0.0.1", node->shelves);
      ASSERT_TRUE(made) << made.error().text;
      node->server = std::move(*made);
      node->server->allow(kSecret);
    }
  }
  struct OneNode {
    ShareShelves shelves{arenas(), arenas()};
    std::unique_ptr<SnapshotServer> server;
    ShareSource source() const { return {{"127.0.0.1", server->port()}, kSecret, 2s}; }
  };
  void copies_until(int64_t step) {
    const auto copier = std::make_shared<Stopper>();
    auto count = std::async(std::launch::async, [&] {
      return keep_copies(lost.source(), *neighbour.shelves.copies, copier,
                         {[](int64_t) {}, [](const std::string&) {}});
    });
    const Instant until = boot_now() + 30s;
    while (kept(*neighbour.shelves.copies, 1, step) == "nothing" && boot_now() < until) {
      ASSERT_FALSE(stopper->wait(10ms));
    }
    copier->stop();
    counted = count.get();
  }

  OneNode lost, neighbour;
  CopyCount counted;
};

TEST_F(SharesBetweenAgents, ANewNodeHasTheMemoryOfTheLostOne) {
  both_serve();
  const std::string zero = text_of(3 * kMiB + 17), one = text_of(777);
  saves(*lost.shelves.own, 0, 20, zero);
  saves(*lost.shelves.own, 1, 20, one);
  copies_until(20);
  EXPECT_EQ(counted.copied, 1u);
  lost.server.reset();
  const auto fresh = arenas();
  const TakenBack back = take_back(neighbour.source(), {2, 2, 4}, *fresh, stopper);
  ASSERT_TRUE(back.status) << back.status.error().text;
  EXPECT_EQ(back.step, 20);
  EXPECT_EQ(kept(*fresh, 0, 20), zero);
  EXPECT_EQ(kept(*fresh, 1, 20), one);
  EXPECT_EQ(shares_in(*fresh)[0].label.round, 1) << "as the others' shares of this save say";
  EXPECT_EQ(take_back(neighbour.source(), {2, 2, 4}, *fresh, stopper).step, -1) << "it is here";
  EXPECT_EQ(take_back(neighbour.source(), {0, 2, 4}, *arenas(), stopper).step, -1) << "others'";
}

TEST_F(SharesBetweenAgents, TheNewestIsCopiedAndThoseBetweenAreCounted) {
  both_serve();
  for (int index : {0, 1}) saves(*lost.shelves.own, index, 20, "twenty");
  copies_until(20);
  for (int64_t step : {30, 40, 50}) {
    for (int index : {0, 1}) saves(*lost.shelves.own, index, step, "at " + std::to_string(step));
  }
  copies_until(50);
  EXPECT_EQ(kept(*neighbour.shelves.copies, 0, 50), "at 50");
  EXPECT_EQ(kept(*neighbour.shelves.copies, 0, 20), "twenty") << "the one before stays beside it";
}

TEST_F(SharesBetweenAgents, WhoDoesNotKnowTheSecretGetsNothing) {
  both_serve();
  for (int index : {0, 1}) saves(*neighbour.shelves.copies, index, 20, "private");
  port = neighbour.server->port();
  EXPECT_EQ(asks("cpprun-shares-1 wrong copies"), "secret");
  EXPECT_TRUE(asks("cpprun-shares-1 " + std::string(kSecret) + " copies").starts_with("bytes "));
  EXPECT_EQ(asks("cpprun-shares-1 " + std::string(kSecret) + " copies 0 21 1 2 4 1 0 7"),
            "no it is not there any more");
  serves();  // an agent without --snapshot-replicas
  EXPECT_EQ(asks("cpprun-shares-1 " + std::string(kSecret) + " copies"),
            "no it keeps no copies in memory");
}

TEST_F(SharesBetweenAgents, BytesThatDifferAreNotTaken) {
  both_serve();
  saves(*neighbour.shelves.copies, 0, 20, "right");
  saves(*neighbour.shelves.copies, 1, 20, "wrong", 1, 99);
  const auto fresh = arenas();
  const TakenBack back = take_back(neighbour.source(), {2, 2, 4}, *fresh, stopper);
  ASSERT_FALSE(back.status);
  EXPECT_EQ(back.status.error().text, "the share of rank 3 has another checksum");
  EXPECT_TRUE(shares_in(*fresh).empty()) << "not even the one that was right";
}

TEST_F(SharesBetweenAgents, ANeighbourThatIsGoneHoldsUpNobodyForLong) {
  both_serve();
  const ShareSource gone = neighbour.source();
  neighbour.server.reset();
  const auto waiting = std::async(std::launch::async, [&] {
    return take_back(gone, {2, 2, 4}, *arenas(), stopper);
  });
  EXPECT_EQ(waiting.wait_for(limits::kSharesSought + 10s), std::future_status::ready);
  stopper->stop();
}

}  // namespace
}  // namespace cpprun::test
