// Requests for log files on their way between tools and agents.
#include "rendezvous/server/log_relay.hpp"

#include "common/limits/log_files.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::LogReply;
using control::LogRequest;

class LogRelayTest : public JobTest {
 public:
  LogRelayTest() {
    for (const char* name : {"a", "b"}) player(name).facts.reads_log_files = true;
    a_and_b_run();
  }

  void is_admitted(SessionId tool) { ASSERT_TRUE(relay.admit(tool, run_id).ok()); }
  void asks(SessionId tool, const std::string& name, int64_t id) {
    LogRequest request;
    request.id = id;
    request.run_id = run_id;
    request.mac = "mac";
    request.node = player(name).hello.node.incarnation;
    request.lines = 7;
    relay.on_request(tool, request);
  }
  SessionId session_of(const std::string& name) { return *player(name).session; }
  // What was sent there last; nothing: it is of another kind, or there is none.
  template <class T>
  const T* last(SessionId to) {
    for (auto it = sent.rbegin(); it != sent.rend(); ++it) {
      if (it->first == to) return std::get_if<T>(&it->second);
    }
    return nullptr;
  }
  void answers(const std::string& name, int64_t id) {
    LogReply reply;
    reply.id = id;
    reply.base_rank = 4;
    reply.nodes = {{}};
    relay.on_reply(session_of(name), reply);
  }
  void expect_reply(SessionId tool, int64_t id, const std::string& why) {
    const auto* reply = last<LogReply>(tool);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->id, id);
    EXPECT_NE(reply->why.find(why), std::string::npos) << reply->why;
  }

  static constexpr SessionId kTool{1001}, kOther{1002};
  std::vector<std::pair<SessionId, control::CoordinatorMessage>> sent;
  LogRelay relay{core, [this](SessionId to, control::CoordinatorMessage message) {
                   sent.emplace_back(to, over_the_wire(message));
                 }};
};

TEST_F(LogRelayTest, AdmitsToolsOfAJobThatIsThere) {
  EXPECT_FALSE(relay.admit(kTool, "another").ok());
  EXPECT_FALSE(relay.is_admitted(kTool));
  EXPECT_TRUE(relay.admit(kTool, "").ok()) << "there is one job only";
  EXPECT_TRUE(relay.is_admitted(kTool));
}

TEST_F(LogRelayTest, AdmitsSoManyToolsAtATime) {
  for (size_t i = 0; i < limits::kLogReaders; ++i) is_admitted(SessionId(2000 + i));
  EXPECT_FALSE(relay.admit(kTool, run_id).ok());
  relay.on_closed(SessionId(2000));
  is_admitted(kTool);
}

TEST_F(LogRelayTest, ListsTheNodes) {
  join("spare");
  is_admitted(kTool);
  relay.on_request(kTool, LogRequest{5});
  const auto* list = last<LogReply>(kTool);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->id, 5);
  EXPECT_FALSE(list->is_job_over);
  EXPECT_EQ(list->nodes_in_all, 3);
  ASSERT_EQ(list->nodes.size(), 3U);
  for (const control::LogNode& node : list->nodes) {
    const bool is_spare = node.id.name == "spare";
    EXPECT_EQ(node.can_read, !is_spare) << node.id.name << ": an agent that reads none";
    EXPECT_EQ(node.group_rank < 0, is_spare) << node.id.name;
  }
  LogRequest further{6};
  further.skip = 2;
  relay.on_request(kTool, further);
  EXPECT_EQ(last<LogReply>(kTool)->nodes.size(), 1U);
}

TEST_F(LogRelayTest, PassesARequestAndItsReply) {
  is_admitted(kTool);
  is_admitted(kOther);
  asks(kTool, "a", 8);
  const LogRequest first = *last<LogRequest>(session_of("a"));
  EXPECT_EQ(first.lines, 7);
  EXPECT_EQ(first.run_id + first.mac, "") << "the agent needs neither";
  asks(kOther, "a", 8);
  const LogRequest second = *last<LogRequest>(session_of("a"));
  EXPECT_NE(first.id, second.id);
  EXPECT_NE(first.reader, second.reader);
  answers("a", second.id);
  EXPECT_EQ(last<LogReply>(kTool), nullptr);
  expect_reply(kOther, 8, "");
  EXPECT_EQ(last<LogReply>(kOther)->base_rank, 4);
  EXPECT_TRUE(last<LogReply>(kOther)->nodes.empty()) << "the coordinator alone knows them";
  answers("a", first.id);
  expect_reply(kTool, 8, "");
}

TEST_F(LogRelayTest, OnlyTheNodeThatWasAskedAnswersAndOnce) {
  is_admitted(kTool);
  asks(kTool, "a", 8);
  const int64_t id = last<LogRequest>(session_of("a"))->id;
  answers("b", id);
  answers("a", id + 1);
  EXPECT_EQ(last<LogReply>(kTool), nullptr);
  answers("a", id);
  answers("a", id);
  EXPECT_EQ(std::ranges::count(sent, kTool, [](const auto& each) { return each.first; }), 1);
}

TEST_F(LogRelayTest, ANodeThatIsGoneIsReported) {
  is_admitted(kTool);
  asks(kTool, "a", 8);
  const SessionId gone = session_of("a");
  is_cut_off("a");
  relay.on_closed(gone);
  expect_reply(kTool, 8, "the connection of the node has ended");
  asks(kTool, "a", 9);
  expect_reply(kTool, 9, "no connection to the coordinator");
}

TEST_F(LogRelayTest, AToolHasSoManyRequestsOnTheirWay) {
  is_admitted(kTool);
  is_admitted(kOther);
  for (size_t i = 0; i < limits::kLogRequests; ++i) asks(kTool, "a", 1);
  EXPECT_EQ(last<LogReply>(kTool), nullptr);
  asks(kTool, "b", 2);
  expect_reply(kTool, 2, "too many requests");
  asks(kOther, "b", 3);
  EXPECT_NE(last<LogRequest>(session_of("b")), nullptr) << "each tool has its own";
  answers("a", last<LogRequest>(session_of("a"))->id);
  expect_reply(kTool, 1, "");
  sent.clear();
  asks(kTool, "b", 4);
  EXPECT_NE(last<LogRequest>(session_of("b")), nullptr);
}

TEST_F(LogRelayTest, AToolThatIsGoneGetsNothing) {
  is_admitted(kTool);
  asks(kTool, "a", 8);
  const int64_t id = last<LogRequest>(session_of("a"))->id;
  relay.on_closed(kTool);
  answers("a", id);
  EXPECT_EQ(last<LogReply>(kTool), nullptr);
  EXPECT_FALSE(relay.is_admitted(kTool));
}

TEST_F(LogRelayTest, TheEndOfTheJobIsInTheList) {
  is_admitted(kTool);
  all({"a", "b"}, &JobTest::sends_done);
  relay.on_request(kTool, LogRequest{5});
  EXPECT_TRUE(last<LogReply>(kTool)->is_job_over);
}

}  // namespace
}  // namespace cpprun::test
