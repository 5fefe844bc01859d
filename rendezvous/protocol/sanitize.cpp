#include "rendezvous/protocol/sanitize.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::control {
namespace {

std::string reason(const std::string& raw) {
  return text::cut(text::printable(raw), limits::kReasonBytes);
}
// An address or the name of a host.
std::string name(const std::string& raw) { return text::one_line(raw, limits::kNameBytes); }

template <class Message>
void make_plain(Message&) {}  // no text for people

void make_plain(NodeCheck& message) {
  message.why = text::one_line(message.why, limits::kReasonBytes);
}
void make_plain(LinkResult& message) {
  message.why = text::one_line(message.why, limits::kHostReasonBytes);
  message.bytes = std::max<int64_t>(0, message.bytes);
}
void make_plain(CheckLink& message) {
  message.peer.address = name(message.peer.address);
  message.bytes = std::clamp<int64_t>(message.bytes, 0, limits::kLinkCheckMiBMax << 20);
}
void make_plain(HostRecords& message) {
  for (HostRecord& record : message.hosts) {
    record.host = text::one_line(record.host, limits::kHostNameBytes);
    record.reason = text::one_line(record.reason, limits::kHostReasonBytes);
  }
}

void make_plain(Register& message) {
  // The coordinator refuses those that are too long.
  const auto clean = [](std::string& raw) { raw = text::one_line(raw, raw.size()); };
  clean(message.role);
  clean(message.local_addr);
  clean(message.job_spec.master_addr);
  std::ranges::for_each(message.addresses, clean);
  if (message.assignment && message.assignment->past_failures) {
    clean(message.assignment->past_failures->last);
  }
  if (message.decided) message.decided = sanitize(*std::move(message.decided));
  if (message.host_records) make_plain(*message.host_records);
  make_plain(message.node_check);
}
void make_plain(Failed& message) {
  message.end = for_the_wire(std::move(message.end));
  message.why = reason(message.why);
}
void make_plain(Stopped& message) {
  if (message.failure) message.failure = for_the_wire(*std::move(message.failure));
  make_plain(message.node_check);
}
void make_plain(Leave& message) { message.why = text::one_line(message.why, limits::kReasonBytes); }
void make_plain(FaultPermitRequest& message) { message.where = name(message.where); }
void make_plain(AdminCommand& message) {
  message.node = name(message.node);
  message.reason = text::one_line(message.reason, limits::kHostReasonBytes);
}

void make_plain(Registered& message) {
  message.coordinator = name(message.coordinator);
  message.version = name(message.version);
}
void make_plain(Refused& message) {
  message.why = reason(message.why);
  if (message.occupant) message.occupant->host = name(message.occupant->host);
}
void make_plain(std::optional<Standby>& standby) {
  if (standby) standby->address = name(standby->address);
}
void make_plain(std::optional<PeerAddress>& peer) {
  if (peer) peer->address = name(peer->address);
}
void make_plain(Wait& message) {
  message.why = reason(message.why);
  message.delay = std::clamp(message.delay, Duration{}, limits::kRestartBackoffMax);
  make_plain(message.standby);
}
void make_plain(RankAssignment& message) {
  message.master_addr = name(message.master_addr);
  if (message.resume) message.resume->source_address = name(message.resume->source_address);
  make_plain(message.replicas_of);
  make_plain(message.replicas_at);
  make_plain(message.standby);
  if (message.past_failures) {
    std::string& last = message.past_failures->last;
    last = text::one_line(last, limits::kFingerprintBytes);
  }
}
void make_plain(Stop& message) { message.why = reason(message.why); }
void make_plain(JobResult& message) { message = sanitize(std::move(message)); }
void make_plain(FaultPermit& message) { message.where = name(message.where); }
void make_plain(AdminReply& message) {
  message.text = text::cut(text::printable(message.text), limits::kFailureSummaryBytes);
}
void make_plain(ShutdownRequest& message) { message.why = reason(message.why); }
void make_plain(Redirect& message) { message.address = name(message.address); }

}  // namespace

AgentMessage sanitize(AgentMessage message) {
  std::visit([](auto& m) { make_plain(m); }, message);
  return message;
}

CoordinatorMessage sanitize(CoordinatorMessage message) {
  std::visit([](auto& m) { make_plain(m); }, message);
  return message;
}

JobResult sanitize(JobResult decided) {
  decided.failure_summary =
      text::cut(text::printable(decided.failure_summary), limits::kFailureSummaryBytes);
  decided.why_no_retry = reason(decided.why_no_retry);
  if (decided.root_cause) decided.root_cause = for_the_wire(*std::move(decided.root_cause));
  return decided;
}

}  // namespace cpprun::control
