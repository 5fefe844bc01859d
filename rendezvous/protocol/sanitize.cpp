#include "rendezvous/protocol/sanitize.hpp"

#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::control {
namespace {

std::string reason(const std::string& said) {
  return text::cut(text::printable(said), limits::kReasonBytes);
}

template <class Message>
void make_plain(Message&) {}  // no text for people

void make_plain(Register& message) {
  if (message.decided) message.decided = sanitize(*std::move(message.decided));
}
void make_plain(Failed& message) {
  message.end = for_the_wire(std::move(message.end));
  message.why = reason(message.why);
}
void make_plain(Stopped& message) {
  if (message.failure) message.failure = for_the_wire(*std::move(message.failure));
}
void make_plain(Leave& message) { message.why = text::one_line(message.why, limits::kReasonBytes); }
void make_plain(FaultPermitRequest& message) {
  message.where = text::one_line(message.where, limits::kNameBytes);
}

}  // namespace

AgentMessage sanitize(AgentMessage message) {
  std::visit([](auto& m) { make_plain(m); }, message);
  return message;
}

JobResult sanitize(JobResult decided) {
  decided.failure_summary =
      text::cut(text::printable(decided.failure_summary), limits::kFailureSummaryBytes);
  if (decided.root_cause) decided.root_cause = for_the_wire(*std::move(decided.root_cause));
  return decided;
}

}  // namespace cpprun::control
