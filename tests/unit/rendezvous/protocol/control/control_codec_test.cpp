// Control messages on the wire: every message survives encoding, and all else is rejected.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "common/limits/agent.hpp"
#include "common/limits/server.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/unit/rendezvous/protocol/control/support_messages.hpp"

namespace cpprun::test {
namespace {

using control::AgentMessage;
using control::CoordinatorMessage;
using nlohmann::json;
using Bytes = std::vector<uint8_t>;

constexpr size_t kAgentKinds = std::variant_size_v<AgentMessage>;
constexpr size_t kCoordinatorKinds = std::variant_size_v<CoordinatorMessage>;

Bytes pack(const json& value) { return json::to_msgpack(value); }
bool is_agent_message(const json& value) { return control::decode_agent(pack(value)).ok(); }

TEST(ControlCodec, EveryMessageSurvivesEncoding) {
  RandomMessages random(20261121);
  for (int i = 0; i < 3000; ++i) {
    AgentMessage sent = random.agent(static_cast<size_t>(i) % kAgentKinds);
    Result<AgentMessage> decoded = control::decode_agent(control::encode(sent));
    ASSERT_TRUE(decoded.ok()) << i << ": " << decoded.error().text;
    EXPECT_EQ(decoded->index(), sent.index());
    EXPECT_EQ(control::encode(*decoded), control::encode(sent)) << i;
  }
  for (int i = 0; i < 3000; ++i) {
    CoordinatorMessage sent = random.coordinator(static_cast<size_t>(i) % kCoordinatorKinds);
    Result<CoordinatorMessage> decoded = control::decode_coordinator(control::encode(sent));
    ASSERT_TRUE(decoded.ok()) << i << ": " << decoded.error().text;
    EXPECT_EQ(control::encode(*decoded), control::encode(sent)) << i;
  }
}

// A list of lists is valid nowhere.
template <class Message>
void expect_each_field_is_checked(const Message& message,
                                  Result<Message> (*decode)(std::span<const uint8_t>)) {
  const json whole = json::from_msgpack(control::encode(message));
  json broken = whole;
  broken[1] = 7;
  EXPECT_FALSE(decode(pack(broken)).ok()) << whole[0];
  for (const auto& field : whole[1].items()) {
    broken = whole;
    broken[1][field.key()] = json::array({json::array({json::array()})});
    EXPECT_FALSE(decode(pack(broken)).ok()) << whole[0] << " " << field.key();
    broken[1].erase(field.key());
    EXPECT_TRUE(decode(pack(broken)).ok()) << whole[0] << " without " << field.key();
  }
}

TEST(ControlCodec, RejectsAWrongTypeAndAcceptsAMissingField) {
  RandomMessages random(20261122);
  for (size_t i = 0; i < kAgentKinds; ++i) {
    expect_each_field_is_checked<AgentMessage>(random.agent(i), control::decode_agent);
  }
  for (size_t i = 0; i < kCoordinatorKinds; ++i) {
    expect_each_field_is_checked<CoordinatorMessage>(random.coordinator(i),
                                                     control::decode_coordinator);
  }
}

TEST(ControlCodec, FieldsKeepTheirPositions) {
  control::Failed sent{RoundNumber(4), {}, true};
  sent.end.local_rank = LocalRank(1);
  sent.end.rank = Rank(9);
  sent.end.exit_code = -9;
  sent.end.is_oom_kill = true;
  sent.end.ended_at_wall = WallTime{123};
  sent.end.error =
      ErrorReport{"/tmp/e.json", "ValueError", "trace", WallTime{7}, WallTime{8}, false};
  sent.end.last_lines = {"one", "two"};
  Result<AgentMessage> decoded = control::decode_agent(control::encode(AgentMessage(sent)));
  ASSERT_TRUE(decoded.ok());
  const auto& got = std::get<control::Failed>(*decoded);
  EXPECT_EQ(got.round, RoundNumber(4));
  EXPECT_TRUE(got.is_fatal);
  EXPECT_EQ(got.end.rank, Rank(9));
  EXPECT_EQ(got.end.signal(), 9);
  EXPECT_TRUE(got.end.is_oom_kill);
  EXPECT_FALSE(got.end.has_core);
  EXPECT_EQ(got.end.error->message, "ValueError");
  EXPECT_EQ(got.end.error->stamp, WallTime{7});
  EXPECT_FALSE(got.end.error->is_readable);
  EXPECT_EQ(got.end.last_lines, sent.end.last_lines);
}

TEST(ControlCodec, GoldenBytes) {
  // ["stop", {"cause": 3, "charged": 0, "round": 300, "why": "a node joins"}], as in
  // docs/protocol.md.
  using std::string_literals::operator""s;
  const std::string golden =
      "\x92\xa4stop\x84\xa5"
      "cause\x03\xa7"
      "charged\x00\xa5round\xcd\x01\x2c\xa3why\xac"
      "a node joins"s;
  Bytes bytes = control::encode(CoordinatorMessage(
      control::Stop{RoundNumber(300), control::StopCause::Growth, "a node joins"}));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), golden);
}

TEST(ControlCodec, DecodesAHelloOfAnotherVersion) {
  json hello = json::array({"hello", {{"protocol", 99}, {"version", "9.9"}, {"new", {1, 2}}}});
  Result<AgentMessage> decoded = control::decode_agent(pack(hello));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<control::Hello>(*decoded).protocol, 99);
}

TEST(ControlCodec, MissingFieldsKeepTheirDefaults) {
  Result<AgentMessage> decoded =
      control::decode_agent(pack(json::array({"register", json::object()})));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<control::Register>(*decoded).nproc, 1);
  EXPECT_LT(std::get<control::Register>(*decoded).job_spec.last_call, Duration{});
}

TEST(ControlCodec, RejectsEveryTruncation) {
  RandomMessages random(7);
  for (size_t kind = 0; kind < kAgentKinds; ++kind) {
    Bytes whole = control::encode(random.agent(kind));
    for (size_t n = 0; n < whole.size(); ++n) {
      EXPECT_FALSE(control::decode_agent(std::span(whole).first(n)).ok()) << kind << " at " << n;
    }
  }
  for (size_t kind = 0; kind < kCoordinatorKinds; ++kind) {
    Bytes whole = control::encode(random.coordinator(kind));
    for (size_t n = 0; n < whole.size(); ++n) {
      EXPECT_FALSE(control::decode_coordinator(std::span(whole).first(n)).ok());
    }
  }
}

TEST(ControlCodec, RejectsBytesAfterAMessage) {
  Bytes bytes = control::encode(AgentMessage(control::Ping{1}));
  bytes.push_back(0);
  EXPECT_FALSE(control::decode_agent(bytes).ok());
}

TEST(ControlCodec, AnyChangedByteGivesAMessageOrARejection) {
  constexpr std::array<uint8_t, 11> kValues{0x00, 0x80, 0x91, 0xc0, 0xc1, 0xc6,
                                            0xc9, 0xdb, 0xdd, 0xdf, 0xff};
  RandomMessages random(11);
  for (size_t kind = 0; kind < kAgentKinds; ++kind) {
    const Bytes bytes = control::encode(random.agent(kind));
    // In a long message most bytes belong to texts: some bytes change, and each takes one value.
    const bool is_short = bytes.size() <= 512;
    const size_t values = is_short ? kValues.size() : 1;
    const size_t stride = is_short ? 1 : bytes.size() / 512;
    for (size_t i = kind % stride; i < bytes.size(); i += stride) {
      for (size_t value = i; value < i + values; ++value) {
        Bytes changed = bytes;
        changed[i] = kValues[value % kValues.size()];
        Result<AgentMessage> decoded = control::decode_agent(changed);
        if (!decoded) continue;
        EXPECT_TRUE(control::decode_agent(control::encode(*decoded)).ok());
      }
    }
  }
}

TEST(ControlCodec, RejectsInvalidMessages) {
  for (const json& wrong :
       {json(nullptr), json(1), json("ping"), json::object(), json::array(), json::array({"ping"}),
        json::array({"ping", 1}), json::array({"ping", json::array()}),
        json::array({1, json::object()}), json::array({"no such", json::object()}),
        json::array({"rank_assignment", json::object()}),
        json::array({"ping", json::object(), 1})}) {
    EXPECT_FALSE(is_agent_message(wrong)) << wrong;
  }
  EXPECT_FALSE(control::decode_coordinator(pack(json::array({"ping", json::object()}))).ok());
  EXPECT_FALSE(control::decode_agent({}).ok());
}

TEST(ControlCodec, RejectsWrongTypesAndRanges) {
  auto with = [](const char* name, const char* field, const json& value) {
    return is_agent_message(json::array({name, {{field, value}}}));
  };
  for (const json& wrong : {json("1"), json(1.5), json(true), json(nullptr), json::array({1}),
                            json::object(), json(UINT64_MAX)}) {
    EXPECT_FALSE(with("ping", "seq", wrong)) << wrong;
    EXPECT_FALSE(with("stopped", "round", wrong)) << wrong;
  }
  EXPECT_TRUE(with("ping", "seq", INT64_MIN));
  EXPECT_FALSE(with("register", "reported_phase", 4));
  EXPECT_FALSE(with("register", "reported_phase", -1));
  EXPECT_TRUE(with("register", "reported_phase", 3));
  EXPECT_TRUE(with("register", "node_rank", nullptr));
  EXPECT_FALSE(with("register", "node_rank", "0"));
  EXPECT_FALSE(with("register", "addresses", "10.0.0.1"));
  EXPECT_FALSE(with("register", "addresses", json::array({1})));
  EXPECT_FALSE(with("register", "job_spec", json::array()));
  EXPECT_FALSE(with("register", "job_spec", json{{"node_lease_ns", INT64_MAX}})) << "sums must fit";
  EXPECT_FALSE(with("register", "job_spec", json{{"has_fixed_ranks", 1}}));
  EXPECT_FALSE(with("hello", "node", json{{"incarnation", -1}}));
  EXPECT_TRUE(with("hello", "node", json{{"incarnation", UINT64_MAX}}));
  EXPECT_FALSE(with("failed", "end", json{{"pid", int64_t{INT32_MAX} + 1}}));
  EXPECT_FALSE(with("failed", "end", json{{"error", 1}}));
  EXPECT_FALSE(with("leave", "why", 1));
}

TEST(ControlCodec, StringsAreBytesUpToALimit) {
  std::string limit(limits::kSummaryTextBytes, '\xff');
  auto why = [](const std::string& text) { return json::array({"leave", {{"why", text}}}); };
  EXPECT_TRUE(is_agent_message(why(limit)));
  EXPECT_FALSE(is_agent_message(why(limit + "x")));
  Result<AgentMessage> decoded =
      control::decode_agent(control::encode(AgentMessage(control::Leave{limit + "cut"})));
  ASSERT_TRUE(decoded.ok()) << "a long one is cut, not lost";
  EXPECT_EQ(std::get<control::Leave>(*decoded).why, limit);
}

TEST(ControlCodec, HugeLengthsAllocateNothing) {
  for (const Bytes& bytes :
       {Bytes{0xdd, 0xff, 0xff, 0xff, 0xff}, Bytes{0xdf, 0xff, 0xff, 0xff, 0xff},
        Bytes{0xdb, 0xff, 0xff, 0xff, 0xff}, Bytes{0xc6, 0xff, 0xff, 0xff, 0xff},
        Bytes{0xc9, 0xff, 0xff, 0xff, 0xff, 1}, Bytes{0xdc, 0xff, 0xff},
        Bytes{0x92, 0xa4, 'p', 'i', 'n', 'g', 0xdf, 0xff, 0xff, 0xff, 0xff}}) {
    EXPECT_FALSE(control::decode_agent(bytes).ok());
    EXPECT_FALSE(control::decode_coordinator(bytes).ok());
  }
}

TEST(ControlCodec, RejectsDeepNestingBeforeRecursion) {
  for (uint8_t opener : Bytes{0x91, 0x81, 0xdc}) {
    EXPECT_FALSE(control::decode_agent(Bytes(60000, opener)).ok());
  }
  Bytes maps;  // {"": {"": ...
  for (int i = 0; i < 30000; ++i) maps.insert(maps.end(), {0x81, 0xa0});
  EXPECT_FALSE(control::decode_agent(maps).ok());
  auto nested = [](int depth) {
    json value = 1;
    for (int i = 0; i < depth; ++i) value = json::array({value});
    return json::array({"ping", {{"unknown", value}}});
  };
  EXPECT_TRUE(is_agent_message(nested(limits::kControlFrameDepth - 2)));
  EXPECT_FALSE(is_agent_message(nested(limits::kControlFrameDepth - 1)));
}

TEST(ControlCodec, RejectsUnusedTypes) {
  EXPECT_FALSE(is_agent_message(json::array({"ping", {{"unknown", json::binary({1, 2})}}})));
  EXPECT_TRUE(is_agent_message(json::array({"ping", {{"unknown", 1.5}}})));
  Bytes too_long(limits::kControlFrameBytes + 1, 0xc0);
  EXPECT_FALSE(control::decode_agent(too_long).ok());
}

TEST(ControlFrame, DecodesFramesCutAtEveryByte) {
  Bytes stream;
  control::append_frame(stream, Bytes{1, 2, 3});
  control::append_frame(stream, Bytes(300, 7));
  for (size_t n = 0; n <= stream.size(); ++n) {
    control::FrameView first = control::next_frame(std::span(stream).first(n));
    EXPECT_EQ(first.state == control::FrameView::State::Whole, n >= 7) << n;
    if (n < 7) continue;
    EXPECT_EQ(first.consumed, 7U);
    EXPECT_EQ(Bytes(first.body.begin(), first.body.end()), (Bytes{1, 2, 3}));
    control::FrameView second = control::next_frame(std::span(stream).first(n).subspan(7));
    EXPECT_EQ(second.state == control::FrameView::State::Whole, n == stream.size()) << n;
  }
  EXPECT_EQ(stream[0], 3) << "little-endian";
}

TEST(ControlFrame, RejectsAnOversizedFrame) {
  Bytes stream{1};
  EXPECT_TRUE(control::try_append_frame(stream, Bytes(limits::kControlFrameBytes, 7)).ok());
  const size_t before = stream.size();
  const Status refused = control::try_append_frame(stream, Bytes(limits::kControlFrameBytes + 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("65537 bytes"), std::string::npos);
  EXPECT_EQ(stream.size(), before);
}

TEST(ControlFrame, RejectsInvalidLengths) {
  auto state = [](Bytes bytes) { return control::next_frame(bytes).state; };
  EXPECT_EQ(state({0, 0, 0, 0}), control::FrameView::State::Broken);
  EXPECT_EQ(state({1, 0, 1, 0}), control::FrameView::State::Broken) << "one more than the limit";
  EXPECT_EQ(state({0, 0, 1, 0}), control::FrameView::State::NeedMore);
  EXPECT_EQ(state({0xff, 0xff, 0xff, 0xff}), control::FrameView::State::Broken);
  EXPECT_EQ(state({'G', 'E', 'T', ' '}), control::FrameView::State::Broken);
}

}  // namespace
}  // namespace cpprun::test
