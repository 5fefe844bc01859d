// The bytes of the worker channel and the layout of the shared page.
#include "rendezvous/protocol/worker/worker_channel.hpp"
#include "common/limits/channel.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>

#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun::channel {
namespace {

using namespace std::string_literals;

Result<Message> decoded(const std::string& bytes) {
  return decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(WorkerChannel, MessagesSurviveEncoding) {
  Result<Message> hello = decoded(encode(Hello{kVersion + 1}));
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(std::get<Hello>(*hello).version, kVersion + 1);
  EXPECT_EQ(std::get<Page>(*decoded(encode(Page{4096}))).bytes, 4096u);
  EXPECT_TRUE(std::holds_alternative<Ready>(*decoded(encode(Ready{}))));
  EXPECT_EQ(std::get<Report>(*decoded(encode(Report{"a\0b\n"s}))).text, "a\0b\n"s);
  EXPECT_EQ(std::get<Report>(*decoded(encode(Report{}))).text, "");
}

TEST(WorkerChannel, SnapshotMessagesSurviveEncoding) {
  const auto wanted = std::get<ArenaRequest>(*decoded(encode(ArenaRequest{7, 1ULL << 40})));
  EXPECT_EQ(wanted.request_id, 7u);
  EXPECT_EQ(wanted.bytes, 1ULL << 40);
  EXPECT_EQ(std::get<PeerArenaRequest>(*decoded(encode(PeerArenaRequest{8, 3}))).local_rank, 3u);
  const auto arena = std::get<Arena>(*decoded(encode(Arena{9, 12, "no room"})));
  EXPECT_EQ(arena.bytes, 12u);
  EXPECT_EQ(arena.refusal, "no room");
  EXPECT_EQ(std::get<CommitRequest>(*decoded(encode(CommitRequest{1, -5}))).step, -5);
  const auto leave = std::get<Permission>(*decoded(encode(Permission{2, true, "why"})));
  EXPECT_TRUE(leave.is_permitted);
  EXPECT_EQ(leave.why, "why");
  const auto snapshot = std::get<Snapshot>(*decoded(encode(Snapshot{20, "/a/step-20"})));
  EXPECT_EQ(snapshot.step, 20);
  EXPECT_EQ(snapshot.path, "/a/step-20");
  const auto resumed = std::get<Resumed>(*decoded(encode(Resumed{true, 18, "/a/step-18"})));
  EXPECT_TRUE(resumed.fell_back);
  EXPECT_EQ(resumed.step, 18);
  EXPECT_EQ(resumed.path, "/a/step-18");
}

TEST(WorkerChannel, TheFirstStepSurvivesEncoding) {
  EXPECT_EQ(encode(FirstStep{41}), "CPRW\15\0\0\0\51\0\0\0\0\0\0\0"s);
  EXPECT_EQ(std::get<FirstStep>(*decoded(encode(FirstStep{-3}))).step, -3);
  EXPECT_FALSE(decoded(encode(FirstStep{1}) + "x").ok());
}

TEST(WorkerChannel, MessagesOfSurvivorsSurviveEncoding) {
  EXPECT_EQ(encode(Elastic{}), "CPRW\16\0\0\0"s);
  EXPECT_EQ(encode(Regroup{}), "CPRW\17\0\0\0"s);
  EXPECT_EQ(encode(Released{41}), "CPRW\20\0\0\0\51\0\0\0\0\0\0\0"s);
  EXPECT_EQ(encode(NewRound{}), "CPRW\21\0\0\0"s);
  EXPECT_EQ(std::get<Released>(*decoded(encode(Released{-1}))).step, -1);
  EXPECT_TRUE(std::holds_alternative<Elastic>(*decoded(encode(Elastic{}))));
  EXPECT_FALSE(decoded(encode(NewRound{}) + "x").ok());
}

TEST(WorkerChannel, FaultMessagesSurviveEncoding) {
  const auto request =
      std::get<FaultPermitRequest>(*decoded(encode(FaultPermitRequest{4, 2, 300, -1})));
  EXPECT_EQ(request.request_id, 4u);
  EXPECT_EQ(request.fault, 2u);
  EXPECT_EQ(request.step, 300);
  EXPECT_EQ(request.epoch, -1);
  const auto began = std::get<Began>(*decoded(encode(Began{20, 3})));
  EXPECT_EQ(began.step, 20);
  EXPECT_EQ(began.epoch, 3);
}

TEST(WorkerChannel, ChecksumMessagesSurviveEncoding) {
  const auto request =
      std::get<ChecksumRequest>(*decoded(encode(ChecksumRequest{4, "16 bytes a range"})));
  EXPECT_EQ(request.request_id, 4u);
  EXPECT_EQ(request.ranges, "16 bytes a range");
  const auto given = std::get<Checksums>(*decoded(encode(Checksums{5, true, "crcs"})));
  EXPECT_EQ(given.request_id, 5u);
  EXPECT_TRUE(given.is_given);
  EXPECT_EQ(given.text, "crcs");
}

TEST(WorkerChannel, RejectsABodyCutInAnyField) {
  constexpr size_t kHead = 8;  // magic number and kind
  for (const Message& message :
       {Message(Hello{}), Message(Page{}), Message(ArenaRequest{}), Message(PeerArenaRequest{}),
        Message(Arena{1, 2, {}}), Message(CommitRequest{}), Message(Permission{}),
        Message(Snapshot{}), Message(Resumed{}), Message(FaultPermitRequest{}), Message(Began{}),
        Message(FirstStep{}), Message(ChecksumRequest{}), Message(Checksums{})}) {
    const std::string whole = encode(message);
    EXPECT_TRUE(decoded(whole).ok()) << message.index();
    size_t refused = 0;
    for (size_t size = kHead; size < whole.size(); ++size) {
      refused += decoded(whole.substr(0, size)).ok() ? 0 : 1;
    }
    EXPECT_EQ(refused, whole.size() - kHead) << message.index();
  }
}

TEST(WorkerChannel, AnswersNameTheirRequest) {
  EXPECT_EQ(request_id_of(*decoded(encode(Arena{9, 0, {}}))), 9u);
  EXPECT_EQ(request_id_of(*decoded(encode(Permission{8, false, {}}))), 8u);
  EXPECT_EQ(request_id_of(*decoded(encode(Checksums{7, false, {}}))), 7u);
  EXPECT_FALSE(request_id_of(ArenaRequest{7}).has_value());
  EXPECT_FALSE(request_id_of(Ready{}).has_value());
}

TEST(WorkerChannel, RejectsCutOrLongerBodies) {
  const std::string longest(limits::kWorkerReportBytes, 'x');
  for (const Message& message :
       {Message(ArenaRequest{}), Message(PeerArenaRequest{}), Message(Arena{1, 2, longest}),
        Message(CommitRequest{}), Message(Permission{1, true, longest}),
        Message(Snapshot{1, longest}), Message(Resumed{true, 1, longest})}) {
    const std::string bytes = encode(message);
    EXPECT_TRUE(decoded(bytes).ok());
    EXPECT_FALSE(decoded(bytes + "x").ok()) << message.index();
    EXPECT_FALSE(decoded(bytes.substr(0, 11)).ok()) << message.index();
  }
  std::string leave = encode(Permission{1, true, {}});
  leave[12] = 2;  // neither yes nor no
  EXPECT_FALSE(decoded(leave).ok());
}

TEST(WorkerChannel, BytesAreFixed) {
  EXPECT_EQ(encode(Hello{1}), "CPRW\0\0\0\0\1\0\0\0"s);
  EXPECT_EQ(encode(Ready{}), "CPRW\2\0\0\0"s);
  EXPECT_EQ(encode(Permission{3, true, "y"}), "CPRW\10\0\0\0\3\0\0\0\1\0\0\0y"s);
  EXPECT_EQ(encode(Snapshot{4, "/p"}), "CPRW\11\0\0\0\4\0\0\0\0\0\0\0/p"s);
  EXPECT_EQ(encode(Resumed{true, 4, "/p"}), "CPRW\12\0\0\0\1\0\0\0\4\0\0\0\0\0\0\0/p"s);
}

TEST(WorkerChannel, CutsALongReport) {
  std::string text(limits::kWorkerReportBytes + 100, 'x');
  std::string bytes = encode(Report{text});
  EXPECT_EQ(bytes.size(), 8 + limits::kWorkerReportBytes);
  EXPECT_EQ(std::get<Report>(*decoded(bytes)).text, text.substr(0, limits::kWorkerReportBytes));
}

TEST(WorkerChannel, RejectsInvalidMessages) {
  std::string hello = encode(Hello{});
  for (size_t size = 0; size < hello.size(); ++size) {
    EXPECT_FALSE(decoded(hello.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(decoded(hello + "x").ok());
  EXPECT_FALSE(decoded(encode(Ready{}) + "x").ok());
  EXPECT_FALSE(decoded(encode(Page{}) + "x").ok());
  EXPECT_FALSE(decoded("CPRN" + hello.substr(4)).ok());
  EXPECT_FALSE(decoded("CPRW\4\0\0\0"s).ok());
  EXPECT_FALSE(decoded("CPRW\xff\xff\xff\xff"s).ok());
  EXPECT_FALSE(decoded(encode(Report{std::string(limits::kWorkerReportBytes, 'x')}) + "x").ok());
}

TEST(WorkerChannel, RandomBytesNeverCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = i % 2 == 0 ? "CPRW" : "";
    size_t size = random() % 24;
    while (bytes.size() < size) bytes.push_back(static_cast<char>(random() % 11));
    static_cast<void>(decoded(bytes).ok());
  }
}

// Other programs read and write the page too: its offsets are a contract.
TEST(WorkerPage, LayoutIsFixed) {
  EXPECT_EQ(offsetof(WorkerPage, version), 4u);
  EXPECT_EQ(offsetof(WorkerPage, bytes), 8u);
  EXPECT_EQ(offsetof(WorkerPage, step), 64u);
  EXPECT_EQ(offsetof(WorkerPage, collectives), 72u);
  EXPECT_EQ(offsetof(WorkerPage, heartbeat_ns), 80u);
  EXPECT_EQ(offsetof(WorkerPage, phase), 88u);
  EXPECT_EQ(offsetof(WorkerPage, is_ready), 92u);
  EXPECT_EQ(offsetof(WorkerPage, can_save), 96u);
  EXPECT_EQ(offsetof(WorkerPage, stack_file), 100u);
  EXPECT_EQ(offsetof(WorkerPage, step_ns), 104u);
  EXPECT_EQ(offsetof(WorkerPage, progress_only), 112u);
  EXPECT_EQ(offsetof(WorkerPage, wants_stop), 128u);
  EXPECT_EQ(offsetof(WorkerPage, snapshot_written), 192u);
  EXPECT_EQ(offsetof(WorkerPage, snapshot_newest), 256u);
}

}  // namespace
}  // namespace cpprun::channel
