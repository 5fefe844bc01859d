#include "agent/daemon/services/log_file_server.hpp"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/limits/dashboard.hpp"
#include "common/limits/log_files.hpp"
#include "common/machine/last_lines.hpp"
#include "common/machine/regular_file.hpp"

namespace cpprun {
namespace {

using control::LogGap;
using control::LogPart;

// Where the last `lines` lines of a file begin; an incomplete last line counts.
int64_t begin_of_last(int fd, int64_t size, int64_t lines) {
  const int64_t from = std::max<int64_t>(0, size - limits::kLogLookBack);
  const std::string end = read_part(fd, from, static_cast<size_t>(size - from));
  return from + static_cast<int64_t>(last_lines_at(end, lines));
}

// One file with bytes that the reader does not have yet, or with a gap.
struct Pending {
  LogPart part;
  std::string path{};
  int64_t size = 0;
};

// Has one file open at a time: a node may have more files than an agent may have descriptors.
class Reading {
 public:
  Reading(const RoundLogs& logs, const control::LogRequest& request)
      : logs_(logs), request_(request) {
    // A round that forms again with the same restart count has renamed the folder of this one.
    const std::string renamed = logs.folder + ".round_" + std::to_string(logs.round.value);
    struct stat facts {};
    folder_ = ::stat(renamed.c_str(), &facts) == 0 ? renamed : logs.folder;
  }

  control::LogReply reply() {
    const auto most = static_cast<int64_t>(limits::kProgressWorkers);
    const int64_t streams = 2 * std::min(logs_.workers, most);
    for (int64_t i = 0; i < streams; ++i) look((i + request_.id) % streams);
    control::LogReply reply;
    size_t room = limits::kLogReplyBytes;
    // Each gets its share, so that no stream waits for one that is written all the time.
    const size_t share =
        std::clamp<size_t>(room / std::max<size_t>(1, pending_.size()), 512, limits::kLogPartBytes);
    for (Pending& pending : pending_) {
      if (reply.parts.size() == limits::kLogParts) reply.has_more = true;
      if (reply.has_more && (room == 0 || reply.parts.size() == limits::kLogParts)) break;
      read(pending, std::min(share, room));
      room -= pending.part.bytes.size();
      const auto got = static_cast<int64_t>(pending.part.bytes.size());
      if (pending.part.offset + got < pending.size) reply.has_more = true;
      reply.parts.push_back(std::move(pending.part));
    }
    if (!lacks_descriptors_) return reply;
    control::LogReply none;
    none.why = "the agent has no descriptor for its log files now; ask again";
    return none;
  }

 private:
  static int64_t at(const std::vector<int64_t>& values, int64_t stream) {
    const auto index = static_cast<size_t>(stream);
    return index < values.size() ? values[index] : 0;
  }

  // Nothing: there is no such file, or no descriptor for it.
  std::optional<RegularFile> open(const std::string& path) {
    errno = 0;
    std::optional<RegularFile> file = open_regular_file(path);
    if (!file && (errno == EMFILE || errno == ENFILE)) lacks_descriptors_ = true;
    return file;
  }

  void look(int64_t stream) {
    const int64_t known = at(request_.files, stream);
    Pending pending;
    pending.path = folder_ + "/" + std::to_string(stream / 2) +
                   (stream % 2 == 0 ? "/stdout.log" : "/stderr.log");
    pending.part.stream = stream;
    pending.part.offset = at(request_.offsets, stream);
    const std::optional<RegularFile> file = open(pending.path);
    if (!file) {
      if (known == 0) return;
      pending.part.gap = LogGap::Removed;
      pending.size = pending.part.offset;
      pending_.push_back(std::move(pending));
      return;
    }
    pending.size = file->info.st_size;
    pending.part.file = static_cast<int64_t>(file->info.st_ino);
    find_begin(pending, file->fd.get(), known);
    const bool is_new = known == 0 && pending.size > 0;
    const bool has_news = pending.size > pending.part.offset || pending.part.gap != LogGap::None;
    if (has_news || is_new) pending_.push_back(std::move(pending));
  }

  void find_begin(Pending& pending, int fd, int64_t known) const {
    if (known == 0) {
      pending.part.offset =
          request_.lines < 0 ? 0 : begin_of_last(fd, pending.size, request_.lines);
      return;
    }
    if (pending.part.file != known) pending.part.gap = LogGap::Replaced;
    if (pending.part.file == known && pending.size < pending.part.offset)
      pending.part.gap = LogGap::Truncated;
    if (pending.part.gap != LogGap::None) pending.part.offset = 0;
  }

  void read(Pending& pending, size_t most) {
    const size_t wanted = std::min(static_cast<size_t>(pending.size - pending.part.offset), most);
    if (wanted == 0) return;
    const std::optional<RegularFile> file = open(pending.path);
    const bool is_same = file && static_cast<int64_t>(file->info.st_ino) == pending.part.file;
    if (is_same) pending.part.bytes = read_part(file->fd.get(), pending.part.offset, wanted);
    // Truncated or replaced since look(): the next request finds that.
    if (pending.part.bytes.size() < wanted) {
      pending.size = pending.part.offset + static_cast<int64_t>(pending.part.bytes.size());
    }
  }

  const RoundLogs& logs_;
  const control::LogRequest& request_;
  std::string folder_;
  std::vector<Pending> pending_;
  bool lacks_descriptors_ = false;
};

}  // namespace

control::LogReply read_log_files(const RoundLogs& logs, const control::LogRequest& request) {
  control::LogReply reply;
  if (!logs.folder.empty()) reply = Reading(logs, request).reply();
  reply.has_files = !logs.folder.empty();
  reply.round = logs.round;
  reply.base_rank = logs.base_rank;
  reply.is_ended = logs.is_ended;
  return reply;
}

void LogFileServer::on_workers_start(RoundNumber round, int64_t base_rank) {
  RoundLogs logs{round, base_rank, callbacks_.workers};
  for (int rank = 0; rank < callbacks_.workers && logs.folder.empty(); ++rank) {
    logs.folder = attempt_folder_of(callbacks_.files(rank));
  }
  on_round_ended();
  rounds_.push_back(std::move(logs));
  if (rounds_.size() > limits::kLogRounds) rounds_.pop_front();
}

void LogFileServer::on_round_ended() {
  if (!rounds_.empty()) rounds_.back().is_ended = true;
}

const RoundLogs* LogFileServer::round_of(const control::LogRequest& request) const {
  if (rounds_.empty()) return nullptr;
  if (request.round == RoundNumber() && request.lines >= 0) return &rounds_.back();
  const auto found = std::ranges::find_if(
      rounds_, [&](const RoundLogs& logs) { return logs.round >= request.round; });
  return found == rounds_.end() ? &rounds_.back() : &*found;
}

void LogFileServer::on_request(const control::LogRequest& request) {
  const Instant now = boot_now();
  std::erase_if(readers_, [&](const auto& entry) {
    return now - entry.second.heard_at > limits::kLogReaderActive;
  });
  if (readers_.size() < limits::kLogReaders || readers_.contains(request.reader)) {
    readers_[request.reader].heard_at = now;
  }
  control::LogReply none;
  none.id = request.id;
  const RoundLogs* logs = round_of(request);
  if (logs == nullptr) return callbacks_.send(none);
  none.why = "the agent reads for others; ask again";
  if (reads_ >= limits::kLogReadsAtOnce) return callbacks_.send(none);
  ++reads_;
  control::LogRequest meant = request;
  if (logs->round != request.round) {  // the positions are those of another round
    meant.offsets.clear();
    meant.files.clear();
  }
  const auto read = [meant, logs = *logs] { return read_log_files(logs, meant); };
  const auto done = [this, request](const control::LogReply& reply) { on_read(request, reply); };
  background_.run_or(read, done, [](const Status& failed) {
    control::LogReply reply;
    reply.why = failed.error().text;
    return reply;
  });
}

void LogFileServer::on_read(const control::LogRequest& request, const control::LogReply& reply) {
  --reads_;
  control::LogReply answer = reply;
  answer.id = request.id;
  answer.is_job_over = waits_ != nullptr;
  const auto next = std::ranges::find_if(
      rounds_, [&](const RoundLogs& logs) { return logs.round > reply.round; });
  if (next != rounds_.end()) answer.next_round = next->round;
  callbacks_.send(answer);
  const auto reader = readers_.find(request.reader);
  const bool has_all = reply.is_ended && !reply.has_more && reply.why.empty();
  if (reader != readers_.end() && has_all && waits_) reader->second.has_end = true;
  if (waits_ && is_all_read()) release();
}

bool LogFileServer::is_all_read() const {
  // Workers that still run are stopped by what waits.
  if (rounds_.empty() || rounds_.back().folder.empty() || !rounds_.back().is_ended) return true;
  const Instant now = boot_now();
  return std::ranges::all_of(readers_, [&](const auto& entry) {
    const Reader& reader = entry.second;
    const bool is_active = now - reader.heard_at <= limits::kLogReaderActive;
    return !is_active || reader.has_end;
  });
}

void LogFileServer::when_read(std::function<void()> then) {
  if (is_all_read()) return then();
  waits_ = std::move(then);
  timer_.set(boot_now() + limits::kLogEndWait);
}

void LogFileServer::release() {
  timer_.set(Instant::never());
  if (waits_) std::exchange(waits_, nullptr)();
}

void LogFileServer::on_disconnected() {
  readers_.clear();  // another coordinator counts them anew
  release();
}

}  // namespace cpprun
