// What an agent and a worker say to each other over the socket that CPPRUN_AGENT names: a few
// messages, one datagram each. What changes all the time stands in the page that they share
// (worker_page.hpp).
//
// Pure. A message is [magic, type, body]; anything else is an error (Protocol), and whoever gets
// one ends the connection. Questions carry a number of the asker's choice, which their answer
// brings back: an answer that came too late is told from the one that is waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "common/limits/channel.hpp"
#include "common/result.hpp"

namespace cpprun::channel {

inline constexpr uint32_t kVersion = 4;
// Longer datagrams are no message. Whoever receives has room for one byte more, to see it.
inline constexpr size_t kMessageBytes = 20 + limits::kWorkerReportBytes;

// A worker's first words. Which worker it is the agent knows by its session. The agent's own
// version stands in the page; from 2 on it knows what follows Report here, from 3 on Resumed to
// Began, from 4 on FirstStep.
struct Hello {
  uint32_t version = kVersion;
};
// The agent's answer; the page's descriptor comes with it.
struct Page {
  uint32_t bytes = 0;
};
// The worker has set itself up. At most once.
struct Ready {};
// Why the worker is about to end.
struct Report {
  std::string text;
};

// A worker asks for its arena: memory that the agent keeps for this local rank from round to round.
// 0 bytes: as it is.
struct ArenaRequest {
  uint32_t request_id = 0;
  uint64_t bytes = 0;
};
// A worker asks to read the arena of another worker of its node.
struct PeerArenaRequest {
  uint32_t request_id = 0;
  uint32_t local_rank = 0;
};
// The answer to both. With `bytes` above 0 the memory's descriptor comes with it; otherwise there
// is none, and `refusal` says why.
struct Arena {
  uint32_t request_id = 0;
  uint64_t bytes = 0;
  std::string refusal;
};
// A worker asks for leave to commit the snapshot of this step: to give it its final name.
struct CommitRequest {
  uint32_t request_id = 0;
  int64_t step = 0;
};
struct Permission {
  uint32_t request_id = 0;
  bool is_permitted = false;
  std::string why;  // not
};
// The snapshot of this step is committed; it lies at `path`.
struct Snapshot {
  int64_t step = 0;
  std::string path;
};
// What this worker's training goes on from.
struct Resumed {
  bool fell_back = false;  // the snapshot that the launcher chose could not be used
  int64_t step = -1;       // -1: it begins anew
  std::string path;        // empty: from memory, or anew
};

// A fault of the job's plan fits where the worker is: may it be injected? Answered by Leave. The
// agent itself does what a program can't do to itself, before or instead of the answer. Only where
// CPPRUN_FAULTS names a fault by its number.
struct FaultPermitRequest {
  uint32_t request_id = 0;
  uint32_t fault = 0;  // its number in the plan
  int64_t step = -1;   // negative: not known
  int64_t epoch = -1;
};
// The worker begins with this step, in a round of a job with such faults. Once.
struct Began {
  int64_t step = -1;
  int64_t epoch = -1;
};

// The worker has made its first step of this round, and says which. Once.
struct FirstStep {
  int64_t step = 0;
};

using Message =
    std::variant<Hello, Page, Ready, Report, ArenaRequest, PeerArenaRequest, Arena, CommitRequest,
                 Permission, Snapshot, Resumed, FaultPermitRequest, Began, FirstStep>;

// Texts over limits::kWorkerReportBytes are cut.
std::string encode(const Message& message);
Result<Message> decode(std::span<const uint8_t> bytes);

// The number of the question that `message` answers; nothing if it is no answer.
std::optional<uint32_t> request_id_of(const Message& message);

}  // namespace cpprun::channel
