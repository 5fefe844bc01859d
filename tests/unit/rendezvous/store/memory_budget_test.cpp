// The store's memory budget: what counts, what is refused, and what gives memory back.
#include "rendezvous/store/memory_budget.hpp"

#include "common/limits/store.hpp"
#include "tests/support/store_fixture.hpp"

namespace cpprun {
namespace {

constexpr size_t kKiB = 1024;

// Keeps values as a connection does that still has to send them.
class KeepingReplies : public SpokenReplies {
 public:
  void reply_value(SessionId to, const Value& value) override {
    if (value.shared() != nullptr) kept.push_back(*value.shared());
    SpokenReplies::reply_value(to, value);
  }
  void refuse(SessionId to, std::string_view why) override {
    reason = why;
    SpokenReplies::refuse(to, why);
  }

  std::vector<SharedBytes> kept;
  std::string reason;
};

class StoreBudget : public StoreTest {
 protected:
  StoreBudget() { use(64 * kKiB); }

  void use(size_t limit) {
    budget = std::make_shared<MemoryBudget>(limit);
    store = std::make_unique<Store>(budget);
  }
  std::string run(const Command& command) {
    store->apply(SessionId(1), command, sink);
    std::string replies = std::move(sink.replies[1]);
    sink.replies.erase(1);
    return replies;
  }
  std::string write(Op op, std::string_view key, size_t size) {
    const std::string value(size, 'v');
    Command command;
    command.op = op;
    command.key = key;
    command.value = value;
    return run(command);
  }
  std::string key(Op op, std::string_view name, int64_t number = 0) {
    Command command;
    command.op = op;
    command.key = name;
    command.number = number;
    return run(command);
  }
  std::string list(Op op, const std::vector<std::string>& words) {
    std::string raw;
    for (const std::string& word : words) tcpstore::reply_bytes(raw, word);
    Command command;
    command.op = op;
    command.items = tcpstore::Strings(raw.data(), words.size());
    return run(command);
  }

  std::shared_ptr<MemoryBudget> budget;
  std::unique_ptr<Store> store;
  KeepingReplies sink;
};

TEST_F(StoreBudget, RefusesWhatExceedsItAndChangesNothing) {
  EXPECT_EQ(write(Op::Set, "/a", 60 * kKiB), "");
  for (const Op op : {Op::Set, Op::Append, Op::QueuePush}) {
    EXPECT_EQ(write(op, "/b", 8 * kKiB), "refused");
  }
  EXPECT_EQ(write(Op::CompareSet, "/b", 8 * kKiB), "refused");
  EXPECT_EQ(list(Op::MultiSet, {"/b", "1", "/c", std::string(8 * kKiB, 'v')}), "refused");
  EXPECT_EQ(key(Op::GetNumKeys, ""), "1");
  EXPECT_EQ(write(Op::Append, "/a", 1), "refused") << "appending copies or doubles the value";
  EXPECT_EQ(key(Op::QueueLen, "/b"), "0");
}

TEST_F(StoreBudget, NamesKeySizeAndLimit) {
  use(2 << 20);
  write(Op::Set, "a key\n" + std::string(100, 'x'), 3 << 20);
  EXPECT_EQ(sink.reason.find("SET of key 'a key"), 0U) << sink.reason;
  EXPECT_NE(sink.reason.find("needs 3146"), std::string::npos) << sink.reason;
  EXPECT_NE(sink.reason.find("0 of 2 MiB are used"), std::string::npos) << sink.reason;
  EXPECT_EQ(sink.reason.find('\n'), std::string::npos);
  EXPECT_EQ(sink.reason.find(std::string(70, 'x')), std::string::npos) << "the key is cut";
}

TEST_F(StoreBudget, CountsManySmallKeys) {
  int set = 0;
  while (write(Op::Set, "/" + std::to_string(set), 1).empty()) ++set;
  EXPECT_GT(set, 100);
  EXPECT_LT(set, 1000) << "an entry takes more memory than its key and value";
  while (key(Op::Add, "/n" + std::to_string(set), 1) != "refused") ++set;
}

TEST_F(StoreBudget, CountsTheMemoryThatAShortenedValueKeeps) {
  for (int i = 0; write(Op::Set, "/" + std::to_string(i), 8000).empty(); ++i) {
    write(Op::Set, "/" + std::to_string(i), 1);
  }
  EXPECT_LT(key(Op::GetNumKeys, "").size(), 2U) << "at most 9 keys";
}

TEST_F(StoreBudget, GetsEverythingBack) {
  write(Op::Set, "/small", 100);
  write(Op::Set, "/large", 20 * kKiB);
  write(Op::Set, "/large", 1);
  write(Op::Append, "/large", 9 * kKiB);
  write(Op::QueuePush, "/q", 10 * kKiB);
  write(Op::QueuePush, "/q", 10);
  key(Op::Add, "/n", 5);
  list(Op::Wait, {"/x", "/y", std::string(500, 'z')});
  EXPECT_GT(budget->used(), 20 * kKiB);
  for (const char* name : {"/small", "/large", "/n"}) key(Op::DeleteKey, name);
  key(Op::QueuePop, "/q");
  key(Op::QueuePop, "/q");
  store->session_closed(SessionId(1), sink);
  sink.kept.clear();
  EXPECT_EQ(budget->used(), 0U);
  write(Op::Set, "/a", 20 * kKiB);
  write(Op::Set, "/b", 20);
  key(Op::Barrier, "/barrier", 3);
  store.reset();
  EXPECT_EQ(budget->used(), 0U);
}

TEST_F(StoreBudget, CountsADeletedValueUntilItIsSent) {
  write(Op::Set, "/a", 40 * kKiB);
  key(Op::Get, "/a");
  key(Op::DeleteKey, "/a");
  EXPECT_GE(budget->used(), 40 * kKiB);
  EXPECT_EQ(write(Op::Set, "/b", 40 * kKiB), "refused");
  sink.kept.clear();
  EXPECT_EQ(write(Op::Set, "/b", 40 * kKiB), "");
}

TEST_F(StoreBudget, CountsASharedValueOnce) {
  write(Op::Set, "/a", 40 * kKiB);
  const size_t before = budget->used();
  for (int i = 0; i < 100; ++i) key(Op::Get, "/a");
  EXPECT_EQ(budget->used(), before);
}

TEST_F(StoreBudget, RefusesWaitsForTooManyKeys) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(std::to_string(i) + std::string(8000, 'k'));
  EXPECT_EQ(list(Op::Wait, names), "refused");
  EXPECT_EQ(store->waits(), 0U);
  EXPECT_EQ(budget->used(), 0U);
}

TEST_F(StoreBudget, IsSharedByStores) {
  Store other(budget);
  write(Op::Set, "/a", 40 * kKiB);
  const std::string value(40 * kKiB, 'v');
  Command command;
  command.op = Op::Set;
  command.key = "/b";
  command.value = value;
  other.apply(SessionId(2), command, sink);
  EXPECT_EQ(sink.replies[2], "refused");
}

// A reply that names a small value many times holds it once.
TEST_F(StoreBudget, SharesSmallValuesOfALongReply) {
  use(SIZE_MAX);
  write(Op::Set, "/a", Value::kSharedFrom - 1);
  write(Op::Set, "/b", limits::kStoreSharedAtNeed - 1);
  const size_t most = limits::kStoreReplyBytes / (Value::kSharedFrom - 1);
  std::vector<std::string> names(most, "/a");
  list(Op::MultiGet, names);
  EXPECT_TRUE(sink.kept.empty()) << "a reply that fits copies the values";
  names.push_back("/a");
  names.push_back("/b");
  const size_t used = budget->used();
  list(Op::MultiGet, names);
  ASSERT_EQ(sink.kept.size(), most + 1);
  for (const SharedBytes& each : sink.kept) {
    EXPECT_EQ(each.owner, sink.kept.front().owner);
    EXPECT_EQ(each.bytes.size(), Value::kSharedFrom - 1);
  }
  EXPECT_EQ(budget->used(), used);

  write(Op::Append, "/a", 1);
  EXPECT_EQ(key(Op::Get, "/a").size(), Value::kSharedFrom + 2);
  EXPECT_EQ(sink.kept.front().bytes.size(), Value::kSharedFrom - 1);
  write(Op::Set, "/a", 10);
  EXPECT_EQ(key(Op::Get, "/a"), "'" + std::string(10, 'v') + "'");
  sink.kept.clear();
  key(Op::DeleteKey, "/a");
  key(Op::DeleteKey, "/b");
  EXPECT_EQ(budget->used(), 0U);
}

TEST_F(StoreBudget, BoundsTheListOfAllKeys) {
  use(SIZE_MAX);
  const std::string end(limits::kStoreKeyBytes - 8, 'k');
  size_t bytes = 0;
  for (int i = 0; bytes <= limits::kStoreReplyBytes; ++i) {
    const std::string name = std::to_string(i) + end;
    key(Op::Add, name, 1);
    bytes += name.size();
  }
  EXPECT_EQ(key(Op::ListKeys, ""), "refused");
}

}  // namespace
}  // namespace cpprun
