#include "tests/support/sim/trace.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "common/failure/worker_exit.hpp"
#include "rendezvous/protocol/control/control_fields.hpp"

namespace cpprun::sim {
namespace {

using namespace control;  // the messages

std::string round_text(RoundNumber round) { return " round " + std::to_string(round.value); }

std::string details(const Register& m) {
  static constexpr std::array<const char*, 4> kStandings{"idle", "running", "stopped", "done"};
  std::string text = std::string(" as ") + kStandings.at(static_cast<size_t>(m.reported_phase));
  return m.round == RoundNumber() ? text : text + " in" + round_text(m.round);
}
std::string details(const Failed& m) {
  if (m.is_fatal) return round_text(m.round) + ": a worker could not be started";
  return round_text(m.round) + ": rank " + std::to_string(m.end.rank.value) + " " +
         describe_end(m.end);
}
std::string losses_text(const RankAssignment& m) {
  const control::ClassBudgets budgets = class_budgets(m);
  if (budgets.max_node_losses < 0) return "";
  return ", node losses " + std::to_string(budgets.node_losses) + " of " +
         std::to_string(budgets.max_node_losses);
}
std::string details(const RankAssignment& m) {
  return round_text(m.round) + ": group rank " + std::to_string(m.group_rank) + " of " +
         std::to_string(m.group_size) + ", ranks from " + std::to_string(m.base_rank) + " of " +
         std::to_string(m.world_size) + ", restarts " + std::to_string(m.restart_count) + " of " +
         std::to_string(m.max_restarts) + losses_text(m);
}
const char* cause_text(StopCause cause) {
  switch (cause) {
    case StopCause::Failure: return "failure";
    case StopCause::NodeLost: return "a node is lost";
    case StopCause::NodeLeft: return "a node left";
    case StopCause::Growth: return "growth";
    case StopCause::Snapshot: return "a damaged snapshot";
    default: return "on request";
  }
}
std::string details(const Stop& m) {
  return round_text(m.round) + " (" + cause_text(m.cause) + "): " + m.why;
}
std::string details(const Wait& m) {
  return std::string(m.is_spare ? " as a spare" : "") + ": " + m.why;
}
std::string details(const JobResult& m) {
  return m.is_success ? ": success" : ": failure: " + m.failure_summary;
}
std::string details(const Leave& m) { return ": " + m.why; }
std::string details(const AdminCommand& m) {
  switch (m.kind) {
    case AdminCommandKind::Restart: return ": restart";
    case AdminCommandKind::Stop: return m.is_resumable ? ": stop, saving" : ": stop";
    case AdminCommandKind::Drain: return ": drain " + m.node;
    case AdminCommandKind::Scale: return ": scale " + std::to_string(m.nodes);
    case AdminCommandKind::Exclude: return ": exclude " + m.node;
    case AdminCommandKind::Readmit: return ": readmit " + m.node;
  }
  return "";
}
std::string details(const AdminReply& m) { return (m.is_done ? ": " : ": refused: ") + m.text; }
std::string details(const ShutdownRequest& m) {
  return std::string(m.saves ? " saving: " : ": ") + m.why;
}
std::string details(const NodeCheck& m) {
  return m.state == CheckState::Passed ? ": passed" : ": " + m.why;
}
std::string details(const HostRecords& m) {
  std::string text;
  for (const HostRecord& record : m.hosts) {
    text +=
        (text.empty() ? ": " : ", ") + record.host + (record.is_excluded() ? " is excluded" : "");
  }
  return text;
}
std::string details(const Refused& m) { return ": " + m.why; }
template <class Message>
std::string details(const Message& m) {
  if constexpr (requires { m.round; }) return round_text(m.round);
  return "";
}

template <class Variant>
std::string describe_any(const Variant& message) {
  return std::visit([](const auto& m) { return name_of(m) + details(m); }, message);
}

// Messages that a trace leaves out.
bool is_upkeep(std::string_view name) {
  return name == "ping" || name == "pong" || name == "hello" || name == "registered" ||
         name == "ack" || name == "started";
}
bool is_noise(std::string_view name) { return name == "ping" || name == "pong"; }

}  // namespace

std::string describe(const AgentMessage& message) { return describe_any(message); }
std::string describe(const CoordinatorMessage& message) { return describe_any(message); }

void Trace::fold(std::span<const uint8_t> bytes) {
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    fold(word);
    bytes = bytes.subspan(8);
  }
  for (uint8_t byte : bytes) fold(byte);
}

void Trace::line(Instant now, const std::string& actor, const std::string& what) const {
  if (!is_on()) return;
  std::array<char, 64> front{};
  std::snprintf(front.data(), front.size(), "%9.4f %-5s ",
                static_cast<double>(now.nanoseconds()) / 1e9, actor.c_str());
  std::string line = front.data() + what;  // a hint has a line of its own on the console
  std::ranges::replace(line, '\n', ' ');
  sink_(line);
}

template <class Message>
void Trace::write(Instant now, const std::string& actor, const char* arrow,
                  const Message& message) const {
  if (!is_on()) return;
  const std::string name = std::visit([](const auto& m) { return name_of(m); }, message);
  if (detail_ == Detail::All ? is_noise(name) : is_upkeep(name)) return;
  line(now, actor, arrow + describe(message));
}

void Trace::message(Instant now, const std::string& actor, const AgentMessage& m) const {
  write(now, actor, "-> ", m);
}
void Trace::message(Instant now, const std::string& actor, const CoordinatorMessage& m) const {
  write(now, actor, "<- ", m);
}

}  // namespace cpprun::sim
