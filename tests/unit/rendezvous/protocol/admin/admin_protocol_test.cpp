#include "rendezvous/protocol/admin/admin_protocol.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/limits/admin.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(AdminProtocol, ARequestSurvivesEncoding) {
  const AdminQuery asked{"signal", {{"rank", "3"}, {"signal", "10"}, {"odd", "\"}\n\\ \xff"}}};
  const Result<AdminQuery> decoded = decode_query(encode(asked));
  ASSERT_TRUE(decoded.ok()) << decoded.error().text;
  EXPECT_EQ(decoded->verb, "signal");
  EXPECT_EQ(decoded->number("rank"), 3);
  EXPECT_EQ(decoded->number("odd"), std::nullopt);
  EXPECT_EQ(decoded->number("none"), std::nullopt);
  EXPECT_EQ(decoded->parameter("none"), "");
  EXPECT_FALSE(decoded->parameters.contains("verb"));
}

TEST(AdminProtocol, RejectsAnythingButAFlatObjectOfTexts) {
  std::string many = "{\"verb\":\"x\"";
  for (size_t i = 0; i < limits::kAdminParameters; ++i)
    many += ",\"" + std::to_string(i) + "\":\"\"";
  const std::string bodies[] = {
      "",
      "{}",
      "[]",
      "7",
      "{\"verb\":7}",
      "{\"verb\":\"\"}",
      "{\"verb\":\"x\",\"a\":{}}",
      "{\"verb\":\"x\",\"a\":[\"b\"]}",
      "{\"verb\":\"x\",\"a\":null}",
      "{\"verb\":\"x\"} more",
      "{\"verb\":\"x\",\"a\":\"" + std::string(limits::kAdminParameterBytes + 1, 'y') + "\"}",
      many + "}",
      std::string(60'000, '['),
      "{\"verb\":" + std::string(60'000, '[')};
  for (const std::string& body : bodies) {
    const Result<AdminQuery> decoded = decode_query(body);
    ASSERT_FALSE(decoded.ok()) << body.substr(0, 80);
    EXPECT_EQ(decoded.error().kind, ErrorKind::Protocol);
  }
}

TEST(AdminProtocol, DistinguishesARejectionFromAnAnswer) {
  EXPECT_EQ(refusal_reason(refusal("no such \"rank\"")), "no such \"rank\"");
  EXPECT_EQ(refusal_reason(done("sent")), std::nullopt);
  EXPECT_EQ(refusal_reason(encode(NodeView{})), std::nullopt);
}

TEST(AdminProtocol, AnUnreadableRejectionIsStillARejection) {
  EXPECT_EQ(refusal_reason("{\"refused\":7}"), "the agent gave no reason that can be read");
}

TEST(AdminProtocol, UnknownWorkerValuesAreNull) {
  NodeView view;
  view.node = "node0";
  view.workers.resize(2);
  view.workers[1].rank = 1;
  view.workers[1].progress = Heartbeat{40, 7, 2, 500ms, 250ms};
  view.workers[1].memory_bytes = 4096;
  view.snapshot_step = 20;
  const json encoded = json::parse(encode(view));
  EXPECT_EQ(encoded.at("node"), "node0");
  EXPECT_EQ(encoded.at("snapshot_step"), 20);
  const json& silent = encoded.at("workers").at(0);
  for (const char* name : {"step", "heartbeat_age_s", "step_s", "memory_bytes"}) {
    EXPECT_TRUE(silent.at(name).is_null()) << name;
  }
  EXPECT_FALSE(silent.contains("phase"));
  const json& known = encoded.at("workers").at(1);
  EXPECT_EQ(known.at("step"), 40);
  EXPECT_EQ(known.at("heartbeat_age_s"), 0.5);
  EXPECT_EQ(known.at("step_s"), 0.25);
  EXPECT_EQ(known.at("phase"), 2);
  EXPECT_EQ(known.at("memory_bytes"), 4096);
  view.workers[1].progress->step_takes = {};
  EXPECT_TRUE(json::parse(encode(view)).at("workers").at(1).at("step_s").is_null());
}

TEST(AdminProtocol, StacksMayHoldAnyBytes) {
  const json encoded = json::parse(encode(std::vector<WorkerStack>{{3, 4711, "f()\n\xff\n"}}));
  EXPECT_EQ(encoded.at("stacks").at(0).at("rank"), 3);
  EXPECT_EQ(encoded.at("stacks").at(0).at("pid"), 4711);
  EXPECT_EQ(encoded.at("stacks").at(0).at("text"), "f()\n\uFFFD\n");
}

TEST(AdminProtocol, AFrameContainsItsLength) {
  std::string frame;
  control::append_frame(frame, std::string(300, 'x'));
  ASSERT_EQ(frame.size(), 304u);
  EXPECT_EQ(control::frame_length(frame.substr(0, 4), 1000), 300u);
  EXPECT_EQ(control::frame_length(frame.substr(0, 4), 299), std::nullopt);
  EXPECT_EQ(control::frame_length(std::string(4, '\0'), 1000), std::nullopt);
  EXPECT_EQ(control::frame_length("\xff\xff\xff\xff", limits::kAdminReplyBytes), std::nullopt);
}

}  // namespace
}  // namespace cpprun::admin
