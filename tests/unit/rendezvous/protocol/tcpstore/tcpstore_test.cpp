#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "common/limits/store.hpp"

#include <gtest/gtest.h>

#include <random>

#include "rendezvous/protocol/sniff.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun::tcpstore {
namespace {

using namespace std::string_view_literals;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Parser validated(Dialect dialect = Dialect::Modern, const Limits& limits = {}) {
  Parser parser(dialect, limits);
  if (dialect != Dialect::Modern) return parser;
  std::string hello;
  put_validate(hello);
  Command command;
  EXPECT_EQ(parser.parse(bytes_of(hello), command).kind, Parsed::Kind::Whole);
  return parser;
}

// One of each command, as torch 2.12 would send them.
std::vector<std::string> one_of_each() {
  std::vector<std::string_view> keys = {"/a", "/bb", ""};
  std::vector<std::string_view> values = {"1", "", "333"};
  std::vector<std::string> all(19);
  put_write(all[0], Op::Set, "/k", "value");
  put_compare_set(all[1], "/k", "old", "new");
  put_key(all[2], Op::Get, "/k");
  put_number(all[3], Op::Add, "/k", -7);
  put_keys(all[4], Op::Check, keys);
  put_keys(all[5], Op::Wait, keys);
  put_bare(all[6], Op::GetNumKeys);
  put_key(all[7], Op::DeleteKey, "/k");
  put_write(all[8], Op::Append, "/k", "tail");
  put_keys(all[9], Op::MultiGet, keys);
  put_multi_set(all[10], keys, values);
  put_bare(all[11], Op::CancelWait);
  put_ping(all[12], 0xDEADBEEF);
  put_write(all[13], Op::QueuePush, "/q", "item");
  put_key(all[14], Op::QueuePop, "/q");
  put_key(all[15], Op::QueueLen, "/q");
  put_bare(all[16], Op::ListKeys);
  put_number(all[17], Op::Barrier, "/b", 4);
  put_keys(all[18], Op::Wait, {});
  return all;
}

std::string show(const Command& c) {
  std::string text = name(c.op);
  text.append(" ").append(c.key).append("=").append(c.value).append("~").append(c.expected);
  text.append("#").append(std::to_string(c.number));
  for (std::string_view item : c.items) text.append("|").append(item);
  return text;
}

Parsed parse(std::string_view frame, Command& command, Dialect dialect = Dialect::Modern,
             const Limits& limits = {}) {
  Parser parser = validated(dialect, limits);
  return parser.parse(bytes_of(frame), command);
}

TEST(TcpStoreGolden, SetMatchesTheContract) {
  std::string out;
  put_write(out, Op::Set, "/a", "b");
  EXPECT_EQ(out, "\x01\x02\0\0\0\0\0\0\0/a\x01\0\0\0\0\0\0\0b"sv);
}

TEST(TcpStoreGolden, CheckInMatchesAWorldSize) {
  std::string out;
  put_number(out, Op::Add, "init/", 1);
  EXPECT_EQ(out, "\x04\x05\0\0\0\0\0\0\0init/\x01\0\0\0\0\0\0\0"sv);
}

TEST(TcpStoreGolden, ValidateAndPing) {
  std::string out;
  put_validate(out);
  put_ping(out, 0x01020304);
  EXPECT_EQ(out, "\x00\xCE\xF7\x85\x3C\x0D\x04\x03\x02\x01"sv);
}

TEST(TcpStoreGolden, CodesOfEveryCommand) {
  std::vector<std::string> all = one_of_each();
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(static_cast<size_t>(all[i][0]), i + 1) << i;
}

TEST(TcpStoreGolden, Replies) {
  std::string out;
  reply_byte(out, 1);
  reply_number(out, -2);
  reply_nonce(out, 7);
  reply_bytes(out, "ab");
  EXPECT_EQ(out,
            "\x01\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x07\0\0\0\x02\0\0\0\0\0\0\0"
            "ab"sv);
}

TEST(TcpStoreParser, ReadsBackEveryCommand) {
  std::vector<std::string> expected = {"SET /k=value~#0",
                                       "COMPARE_SET /k=new~old#0",
                                       "GET /k=~#0",
                                       "ADD /k=~#-7",
                                       "CHECK =~#0|/a|/bb|",
                                       "WAIT =~#0|/a|/bb|",
                                       "GETNUMKEYS =~#0",
                                       "DELETE_KEY /k=~#0",
                                       "APPEND /k=tail~#0",
                                       "MULTI_GET =~#0|/a|/bb|",
                                       "MULTI_SET =~#0|/a|1|/bb|||333",
                                       "CANCEL_WAIT =~#0",
                                       "PING =~#3735928559",
                                       "QUEUE_PUSH /q=item~#0",
                                       "QUEUE_POP /q=~#0",
                                       "QUEUE_LEN /q=~#0",
                                       "LIST_KEYS =~#0",
                                       "BARRIER /b=~#4",
                                       "WAIT =~#0"};
  std::vector<std::string> all = one_of_each();
  for (size_t i = 0; i < all.size(); ++i) {
    Command command;
    Parsed parsed = parse(all[i], command);
    ASSERT_EQ(parsed.kind, Parsed::Kind::Whole) << i << parsed.why;
    EXPECT_EQ(parsed.size, all[i].size());
    EXPECT_EQ(show(command), expected[i]);
  }
}

TEST(TcpStoreParser, ACutAtEveryByteNeverRequestsTooMuch) {
  for (const std::string& frame : one_of_each()) {
    for (size_t cut = 0; cut < frame.size(); ++cut) {
      Command command;
      Parsed parsed = parse(std::string_view(frame).substr(0, cut), command);
      ASSERT_EQ(parsed.kind, Parsed::Kind::NeedMore) << cut;
      EXPECT_GT(parsed.size, cut);
      EXPECT_LE(parsed.size, frame.size());
    }
  }
}

TEST(TcpStoreParser, OneParserByteByByteGivesTheSame) {
  std::string stream;
  std::vector<std::string> want;
  for (const std::string& frame : one_of_each()) {
    stream += frame;
    Command command;
    (void)parse(frame, command);
    want.push_back(show(command));
  }
  std::vector<std::string> got;
  Parser parser = validated();
  size_t start = 0;
  for (size_t end = 0; end <= stream.size(); ++end) {
    Command command;
    Parsed parsed = parser.parse(bytes_of(stream).subspan(start, end - start), command);
    ASSERT_NE(parsed.kind, Parsed::Kind::Broken);
    if (parsed.kind != Parsed::Kind::Whole) continue;
    got.push_back(show(command));
    start += parsed.size;
  }
  EXPECT_EQ(got, want);
}

TEST(TcpStoreParser, ValidateMustComeFirstAndOnce) {
  Command command;
  Parser fresh(Dialect::Modern);
  EXPECT_EQ(fresh.parse(bytes_of("\x0D\0\0\0\0"sv), command).kind, Parsed::Kind::Broken);
  Parser wrong(Dialect::Modern);
  EXPECT_EQ(wrong.parse(bytes_of("\0\xCE\xF7\x85\x3D"sv), command).kind, Parsed::Kind::Broken);
  Parser twice = validated();
  EXPECT_EQ(twice.parse(bytes_of("\0\xCE\xF7\x85\x3C"sv), command).kind, Parsed::Kind::Broken);
}

TEST(TcpStoreParser, RejectsUnknownCodesImmediately) {
  for (int code = 19; code < 256; ++code) {
    Command command;
    char byte = static_cast<char>(code);
    EXPECT_EQ(parse({&byte, 1}, command).kind, Parsed::Kind::Broken) << code;
  }
}

TEST(TcpStoreParser, ChecksSizesBeforeTheirBytesArrive) {
  Limits limits{16, 32, 4, 100};
  Command command;
  auto with_length = [](uint8_t code, uint64_t length) {
    std::string out(1, static_cast<char>(code));
    reply_number(out, static_cast<int64_t>(length));
    return out;
  };
  EXPECT_EQ(parse(with_length(3, 16), command, Dialect::Modern, limits).kind,
            Parsed::Kind::NeedMore);
  EXPECT_EQ(parse(with_length(3, 17), command, Dialect::Modern, limits).kind, Parsed::Kind::Broken);
  EXPECT_EQ(parse(with_length(3, UINT64_MAX), command, Dialect::Modern, limits).kind,
            Parsed::Kind::Broken);
  EXPECT_EQ(parse(with_length(6, 4), command, Dialect::Modern, limits).kind,
            Parsed::Kind::NeedMore);
  EXPECT_EQ(parse(with_length(6, 5), command, Dialect::Modern, limits).kind, Parsed::Kind::Broken);
  EXPECT_EQ(parse(with_length(11, UINT64_MAX / 2 + 1), command, Dialect::Modern, limits).kind,
            Parsed::Kind::Broken);
  std::string set = with_length(1, 1) + "k";
  reply_number(set, 33);
  EXPECT_EQ(parse(set, command, Dialect::Modern, limits).kind, Parsed::Kind::Broken);
}

TEST(TcpStoreParser, AWholeCommandHasALimitToo) {
  Limits limits{16, 32, 100, 100};
  std::string value(32, 'v');
  std::vector<std::string_view> keys(4, "k");
  std::vector<std::string_view> values(4, value);
  std::string out;
  put_multi_set(out, keys, values);
  Command command;
  EXPECT_EQ(parse(out, command, Dialect::Modern, limits).kind, Parsed::Kind::Broken);
}

// Every parse of the incomplete list must continue where the last one stopped.
TEST(TcpStoreParser, ALongListInSmallPiecesTakesLinearTime) {
  std::string key(40, 'k');
  std::vector<std::string_view> keys(limits::kStoreListItems, key);
  std::string out;
  put_keys(out, Op::Wait, keys);
  Parser parser = validated();
  Command command;
  size_t calls = 0;
  for (size_t end = 1; end < out.size(); end += 48, ++calls) {
    ASSERT_EQ(parser.parse(bytes_of(out).subspan(0, end), command).kind, Parsed::Kind::NeedMore);
  }
  EXPECT_GT(calls, 100'000u);
  ASSERT_EQ(parser.parse(bytes_of(out), command).kind, Parsed::Kind::Whole);
  EXPECT_EQ(command.items.size(), limits::kStoreListItems);
}

TEST(TcpStoreLegacy, CodesAreOneLowerAndValidateIsAbsent) {
  std::string out;
  put_write(out, Op::Set, "/a", "b", Dialect::Legacy21);
  EXPECT_EQ(out[0], 0);
  Command command;
  EXPECT_EQ(parse(out, command, Dialect::Legacy).kind, Parsed::Kind::Whole);
  EXPECT_EQ(show(command), "SET /a=b~#0");
}

TEST(TcpStoreLegacy, AllOf21) {
  std::vector<std::string_view> keys = {"/a"};
  std::vector<std::string_view> values = {"1"};
  for (auto [op, code] : {std::pair{Op::Set, 0}, {Op::Append, 8}}) {
    std::string out;
    put_write(out, op, "/k", "v", Dialect::Legacy21);
    Command command;
    EXPECT_EQ(out[0], code);
    EXPECT_EQ(parse(out, command, Dialect::Legacy21).kind, Parsed::Kind::Whole);
    EXPECT_EQ(command.op, op);
  }
  std::string out;
  put_multi_set(out, keys, values, Dialect::Legacy21);
  put_bare(out, Op::CancelWait, Dialect::Legacy21);
  Parser parser(Dialect::Legacy);
  Command command;
  Parsed parsed = parser.parse(bytes_of(out), command);
  EXPECT_EQ(command.op, Op::MultiSet);
  EXPECT_EQ(parser.dialect(), Dialect::Legacy21);
  (void)parser.parse(bytes_of(out).subspan(parsed.size), command);
  EXPECT_EQ(command.op, Op::CancelWait);
}

TEST(TcpStoreLegacy, CodeEightIsDeleteWithoutAndAppendWithAValue) {
  std::string remove;
  put_key(remove, Op::DeleteKey, "/k", Dialect::Legacy20);
  Parser twenty(Dialect::Legacy);
  Command command;
  EXPECT_EQ(twenty.parse(bytes_of(remove), command).kind, Parsed::Kind::Whole);
  EXPECT_EQ(command.op, Op::DeleteKey);
  EXPECT_EQ(twenty.dialect(), Dialect::Legacy20);

  std::string append;
  put_write(append, Op::Append, "/k", "v", Dialect::Legacy21);
  Parser twentyone(Dialect::Legacy);
  EXPECT_EQ(twentyone.parse(bytes_of(append), command).kind, Parsed::Kind::Whole);
  EXPECT_EQ(command.op, Op::Append);
  EXPECT_EQ(twentyone.dialect(), Dialect::Legacy21);
}

TEST(TcpStoreLegacy, CodeSevenIsDeleteUnlessTheClientHasShownThatItIs20) {
  std::string out;
  put_key(out, Op::DeleteKey, "/k", Dialect::Legacy21);
  Command command;
  EXPECT_EQ(parse(out, command, Dialect::Legacy).kind, Parsed::Kind::Whole);
  EXPECT_EQ(command.op, Op::DeleteKey);
  EXPECT_EQ(parse(out, command, Dialect::Legacy20).kind, Parsed::Kind::Broken);
}

TEST(TcpStoreLegacy, RejectsLargerCodes) {
  Command command;
  EXPECT_EQ(parse("\x0C", command, Dialect::Legacy).kind, Parsed::Kind::Broken);
  EXPECT_EQ(parse("\x09", command, Dialect::Legacy20).kind, Parsed::Kind::Broken);
}

Protocol sniff_text(std::string_view text) { return sniff(bytes_of(text)); }

TEST(ProtocolDetection, DistinguishesProtocols) {
  EXPECT_EQ(sniff_text("\x00\xCE\xF7\x85\x3C"sv), Protocol::ModernStore);
  EXPECT_EQ(sniff_text("\x00\x02\0\0\0"sv), Protocol::LegacyStore);
  EXPECT_EQ(sniff_text("\x03"), Protocol::LegacyStore);
  EXPECT_EQ(sniff_text("CPRN"), Protocol::Control);
  EXPECT_EQ(sniff_text("GET /"), Protocol::Http);
  EXPECT_EQ(sniff_text("CONNECT"), Protocol::Http);
  EXPECT_EQ(sniff_text("\x00\xCE\xF7\x85\x3D"sv), Protocol::Unknown);
  EXPECT_EQ(sniff_text("\x16\x03\x01"), Protocol::Tls);
  EXPECT_EQ(sniff_text("SSH-2"), Protocol::Unknown);
}

TEST(ProtocolDetection, AnyPrefixWaitsForMore) {
  for (std::string_view whole :
       {"\x00\xCE\xF7\x85\x3C"sv, "\x00\x02\0\0\0"sv, "CPRN"sv, "GET /"sv, "POST "sv}) {
    for (size_t n = 1; n < std::min<size_t>(whole.size(), 4); ++n) {
      EXPECT_EQ(sniff_text(whole.substr(0, n)), Protocol::NeedMore) << whole << n;
    }
  }
}

TEST(ProtocolDetection, FiveBytesAlwaysDecide) {
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    char text[5];
    for (char& c : text) c = static_cast<char>(random() % (i % 2 ? 256 : 96));
    EXPECT_NE(sniff_text({text, sizeof text}), Protocol::NeedMore);
  }
}

}  // namespace
}  // namespace cpprun::tcpstore
