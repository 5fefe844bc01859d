#include "tests/support/store_fixture.hpp"

namespace cpprun {
namespace {

TEST_F(StoreTest, SetHasNoReplyAndReplaces) {
  EXPECT_EQ(set(1, "/a", "one"), "");
  EXPECT_EQ(set(1, "/a", ""), "");
  EXPECT_EQ(get("/a"), "''");
  EXPECT_EQ(set(1, "/a", "two"), "");
  EXPECT_EQ(get("/a"), "'two'");
}

TEST_F(StoreTest, GetOfAMissingKeyIsEmpty) { EXPECT_EQ(get("/a"), "''"); }

TEST_F(StoreTest, AppendConcatenatesOrCreates) {
  EXPECT_EQ(write(1, Op::Append, "/a", "one"), "");
  EXPECT_EQ(write(1, Op::Append, "/a", "two"), "");
  EXPECT_EQ(get("/a"), "'onetwo'");
}

TEST_F(StoreTest, AppendWorksAcrossTheSharedValueSize) {
  std::string want;
  for (int i = 0; i < 40; ++i) {
    std::string piece(5000, static_cast<char>('a' + i % 26));
    write(1, Op::Append, "/a", piece);
    want += piece;
  }
  EXPECT_EQ(get("/a"), in_quotes(want));
}

TEST_F(StoreTest, AddCountsInDecimalText) {
  EXPECT_EQ(number(1, Op::Add, "/n", 5), "5");
  EXPECT_EQ(number(1, Op::Add, "/n", -7), "-2");
  EXPECT_EQ(get("/n"), "'-2'");
  EXPECT_EQ(number(1, Op::Add, "/zero", 0), "0");
  EXPECT_EQ(get("/zero"), "'0'");
}

TEST_F(StoreTest, AddParsesTextAsCDoes) {
  set(1, "/a", "  41 apples");
  EXPECT_EQ(number(1, Op::Add, "/a", 1), "42");
  set(1, "/b", "+7");
  EXPECT_EQ(number(1, Op::Add, "/b", 1), "8");
  set(1, "/c", "-3.5");
  EXPECT_EQ(number(1, Op::Add, "/c", 0), "-3");
}

TEST_F(StoreTest, AddToInvalidTextEndsTheSessionAndKeepsTheValue) {
  for (std::string_view text : {"", "abc", " ", "+-5", "-", "99999999999999999999"}) {
    set(1, "/a", text);
    EXPECT_EQ(number(1, Op::Add, "/a", 1), "refused") << text;
    EXPECT_EQ(get("/a"), in_quotes(text));
  }
}

TEST_F(StoreTest, AddReachesTheLimitsOfTheRange) {
  EXPECT_EQ(number(1, Op::Add, "/n", INT64_MAX), "9223372036854775807");
  EXPECT_EQ(number(1, Op::Add, "/n", 1), "-9223372036854775808");
}

TEST_F(StoreTest, CompareSetOfAPresentAndEqualValueReplaces) {
  set(1, "/c", "old");
  EXPECT_EQ(compare_set("/c", "old", "new"), "'new'");
  EXPECT_EQ(get("/c"), "'new'");
}

TEST_F(StoreTest, CompareSetOfAPresentAndDifferentValueReturnsTheValue) {
  set(1, "/c", "is");
  EXPECT_EQ(compare_set("/c", "expected", "new"), "'is'");
  EXPECT_EQ(get("/c"), "'is'");
}

TEST_F(StoreTest, CompareSetOfAMissingKeyExpectingNothingCreates) {
  EXPECT_EQ(compare_set("/c", "", "first"), "'first'");
  EXPECT_EQ(get("/c"), "'first'");
}

TEST_F(StoreTest, CompareSetOfAMissingKeyExpectingSomethingReturnsTheExpected) {
  EXPECT_EQ(compare_set("/c", "expected", "new"), "'expected'");
  EXPECT_EQ(list(1, Op::Check, {"/c"}), "b1");
}

TEST_F(StoreTest, CheckNeedsAll) {
  set(1, "/a", "");
  EXPECT_EQ(list(1, Op::Check, {"/a"}), "b0");
  EXPECT_EQ(list(1, Op::Check, {"/a", "/b"}), "b1");
  EXPECT_EQ(list(1, Op::Check, {}), "b0");
}

TEST_F(StoreTest, DeleteReturnsTheCountAndWakesNoWaiter) {
  set(1, "/a", "1");
  EXPECT_EQ(key(1, Op::DeleteKey, "/a"), "1");
  EXPECT_EQ(key(1, Op::DeleteKey, "/a"), "0");
}

TEST_F(StoreTest, NumKeysAndListCountEveryRawKeyButNoQueue) {
  set(1, "/b", "");
  set(1, "init/", "");
  write(1, Op::QueuePush, "/q", "x");
  EXPECT_EQ(bare(1, Op::GetNumKeys), "2");
  EXPECT_EQ(bare(1, Op::ListKeys), "2 '/b' 'init/'");
}

TEST_F(StoreTest, MultiSetAndMultiGet) {
  EXPECT_EQ(list(1, Op::MultiGet, {}), "");
  std::string raw;
  for (std::string_view text : {"/a", "1", "/b", "2", "/a", "3"}) tcpstore::reply_bytes(raw, text);
  Command c;
  c.op = Op::MultiSet;
  c.items = tcpstore::Strings(raw.data(), 6);
  EXPECT_EQ(run(1, c), "");
  EXPECT_EQ(list(1, Op::MultiGet, {"/b", "/a", "/none", "/a"}), "'2' '3' '' '3'");
}

TEST_F(StoreTest, PingEchoes) { EXPECT_EQ(number(1, Op::Ping, "", 77), "n77"); }

TEST_F(StoreTest, ALargeValueStaysWhereItWasReceived) {
  auto buffer = std::make_shared<std::string>(2 << 20, 'x');
  Command c;
  c.op = Op::Set;
  c.key = "/big";
  c.value = *buffer;
  store_.apply(SessionId(1), c, sink_, buffer, buffer->size());
  EXPECT_EQ(buffer.use_count(), 2);
  write(1, Op::Append, "/big", "tail");
  EXPECT_EQ(buffer.use_count(), 1) << "appending must not write into the received bytes";
  EXPECT_EQ(buffer->size(), size_t{2 << 20});
  EXPECT_EQ(get("/big").size(), (2u << 20) + 4 + 2);
}

TEST_F(StoreTest, ASmallValueDoesNotKeepALargeBufferAlive) {
  auto buffer = std::make_shared<std::string>(8 << 20, 'x');
  Command c;
  c.op = Op::Set;
  c.key = "/small";
  c.value = std::string_view(*buffer).substr(0, 2 << 20);
  store_.apply(SessionId(1), c, sink_, buffer, buffer->size());
  EXPECT_EQ(buffer.use_count(), 1);
}

}  // namespace
}  // namespace cpprun
