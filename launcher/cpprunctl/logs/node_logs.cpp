#include "launcher/cpprunctl/logs/node_logs.hpp"

#include "common/limits/dashboard.hpp"
#include "common/limits/log_files.hpp"

namespace cpprun::ctl {
namespace {

using control::LogGap;

constexpr auto kStreams = 2 * static_cast<int64_t>(limits::kProgressWorkers);

}  // namespace

control::LogRequest NodeLogs::request(Incarnation node) const {
  control::LogRequest request;
  request.node = node;
  request.round = round_;
  request.lines = lines_;
  for (const Stream& stream : streams_) {
    request.offsets.push_back(stream.offset);
    request.files.push_back(stream.file);
  }
  return request;
}

void NodeLogs::take(const control::LogReply& reply, RoundNumber newest, const Sink& sink) {
  has_answered_ = true;
  is_caught_up_ = false;
  if (reply.round == RoundNumber()) {  // no worker has started there yet
    is_caught_up_ = round_ == RoundNumber();
    return;
  }
  if (reply.round != round_ && reply.round > newest) {
    next_round_ = reply.round;
    return;
  }
  if (reply.round != round_) begin(reply.round, sink);
  has_files_ = reply.has_files;
  base_rank_ = reply.base_rank;
  next_round_ = reply.next_round;
  for (const control::LogPart& part : reply.parts) take(part, sink);
  if (reply.has_more) return;
  lines_ = -1;
  is_caught_up_ = true;
  is_ended_ = reply.is_ended;
}

void NodeLogs::begin(RoundNumber round, const Sink& sink) {
  // The agent knows the next round of each that it has shown, unless it has forgotten it meanwhile.
  if (round_ != RoundNumber() && next_round_ != round) {
    sink.gap(name_ + ": its agent no longer knows the rounds between " +
             std::to_string(round_.value) + " and " + std::to_string(round.value));
  }
  finish(sink);
  streams_.clear();
  round_ = round;
  next_round_ = RoundNumber();
  is_caught_up_ = is_ended_ = false;
}

void NodeLogs::advance(const Sink& sink) {
  if (next_round_ > round_) begin(next_round_, sink);
}

void NodeLogs::take(const control::LogPart& part, const Sink& sink) {
  if (part.stream < 0 || part.stream >= kStreams) return;
  const auto index = static_cast<size_t>(part.stream);
  if (streams_.size() <= index) streams_.resize(index + 1);
  Stream& stream = streams_[index];
  if (part.gap != LogGap::None) report_gap(part, stream, sink);
  if (part.gap == LogGap::Removed) return;
  stream.is_removed = false;
  const bool follows = stream.file == 0 || part.gap != LogGap::None || part.offset == stream.offset;
  if (!follows) return;
  stream.file = part.file;
  stream.offset = part.offset + static_cast<int64_t>(part.bytes.size());
  stream.rest += part.bytes;
  size_t begin = 0;
  for (size_t end; (end = stream.rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
    sink.line(rank_of(part.stream), stream.rest.substr(begin, end - begin));
  }
  stream.rest.erase(0, begin);
  if (stream.rest.size() < limits::kLogLineBytes) return;
  sink.line(rank_of(part.stream), stream.rest);
  stream.rest.clear();
}

void NodeLogs::report_gap(const control::LogPart& part, Stream& stream, const Sink& sink) const {
  if (part.gap == LogGap::Removed && stream.is_removed) return;
  stream.is_removed = part.gap == LogGap::Removed;
  const char* what = part.gap == LogGap::Truncated  ? "was truncated"
                     : part.gap == LogGap::Replaced ? "was replaced by another file"
                                                    : "was removed";
  sink.gap("rank " + std::to_string(rank_of(part.stream)) + ", round " +
           std::to_string(round_.value) + ": its " + (part.stream % 2 == 0 ? "stdout" : "stderr") +
           ".log on " + name_ + " " + what + "; lines behind its first " +
           std::to_string(stream.offset) + " bytes may be missing");
  if (stream.rest.empty()) return;
  sink.line(rank_of(part.stream), stream.rest);
  stream.rest.clear();
}

void NodeLogs::finish(const Sink& sink) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    std::string& rest = streams_[i].rest;
    if (!rest.empty()) sink.line(rank_of(static_cast<int64_t>(i)), rest);
    rest.clear();
  }
}

}  // namespace cpprun::ctl
