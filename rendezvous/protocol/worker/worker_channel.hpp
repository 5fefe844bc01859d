// Messages between an agent and a worker over the socket that CPPRUN_AGENT names, one datagram
// each. Frequently changing values are in shared memory instead (worker_page.hpp).
//
// Pure. A message is [magic, type, body]; anything else is an error (Protocol), and the receiver
// closes the connection. The sender of a request chooses its id and the reply carries it, so that a
// late reply is not taken for the reply to a newer request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "common/limits/channel.hpp"
#include "common/result.hpp"

namespace cpprun::channel {

inline constexpr uint32_t kVersion = 5;
// Longer datagrams are errors. Receivers have room for one more byte, to detect them.
inline constexpr size_t kMessageBytes = 20 + limits::kWorkerReportBytes;

// A worker's first message. The agent identifies the worker by its session. The agent's version is
// in the page: from 2 on it supports the messages after Report, from 3 on Resumed to Began, from 4
// on FirstStep, from 5 on Elastic to NewRound, from 7 on ChecksumRequest.
struct Hello {
  uint32_t version = kVersion;
};
// The agent's reply to Hello; carries the page's descriptor.
struct Page {
  uint32_t bytes = 0;
};
// The worker has finished its setup. At most once.
struct Ready {};
// Why the worker is about to exit.
struct Report {
  std::string text;
};

// A worker requests its arena: memory that the agent keeps for this local rank across rounds. 0
// bytes: at its present size.
struct ArenaRequest {
  uint32_t request_id = 0;
  uint64_t bytes = 0;
};
// A worker requests read access to the arena of another worker of its node.
struct PeerArenaRequest {
  uint32_t request_id = 0;
  uint32_t local_rank = 0;
};
// The reply to both. `bytes` above 0: carries the memory's descriptor. 0: no descriptor; `refusal`
// gives the reason.
struct Arena {
  uint32_t request_id = 0;
  uint64_t bytes = 0;
  std::string refusal;
};
// A worker asks for permission to commit the snapshot of this step: to give it its final name.
struct CommitRequest {
  uint32_t request_id = 0;
  int64_t step = 0;
};
struct Permission {
  uint32_t request_id = 0;
  bool is_permitted = false;
  std::string why;  // why not
};
// The snapshot of this step is committed at `path`.
struct Snapshot {
  int64_t step = 0;
  std::string path;
};
// From which snapshot this worker resumed.
struct Resumed {
  bool fell_back = false;  // the chosen snapshot could not be used
  int64_t step = -1;       // -1: from the beginning
  std::string path;        // empty: from memory, or from the beginning
};

// A fault of the job's plan matches the worker's position; the worker asks whether to inject it.
// The agent replies with Permission. Faults that a program cannot inject into itself are injected
// by the agent, before or in place of the reply. Sent only if CPPRUN_FAULTS names a fault by its
// number.
struct FaultPermitRequest {
  uint32_t request_id = 0;
  uint32_t fault = 0;  // its number in the plan
  int64_t step = -1;   // negative: unknown
  int64_t epoch = -1;
};
// The first step of the worker, in a round of a job with such faults. At most once.
struct Began {
  int64_t step = -1;
  int64_t epoch = -1;
};

// The worker has completed its first step of this round. At most once.
struct FirstStep {
  int64_t step = 0;
};

// The worker can regroup: when a round ends because of another worker, it leaves its process group
// and stays for the next round. Regroup and NewRound come over the connection that sent this.
struct Elastic {};
// The agent asks the worker to leave its process group now.
struct Regroup {};
// The worker has left its process group, and waits for NewRound.
struct Released {
  int64_t step = -1;  // the last one that it has completed; -1: none
};
// The next round begins. Carries three descriptors: a memory with the variables of the round,
// "NAME=value" or "NAME" for one to remove, each with a zero byte behind it; stdout; stderr.
struct NewRound {};

// A worker requests the crc32s of ranges of its arena. `ranges`: for each its first byte and its
// bytes, 8 bytes each; at most limits::kChecksumBytes in all. One request at a time.
struct ChecksumRequest {
  uint32_t request_id = 0;
  std::string ranges;
};
// The reply. `text`: the crc32 of each range, 4 bytes each, or why there are none.
struct Checksums {
  uint32_t request_id = 0;
  bool is_given = false;
  std::string text;
};

using Message =
    std::variant<Hello, Page, Ready, Report, ArenaRequest, PeerArenaRequest, Arena, CommitRequest,
                 Permission, Snapshot, Resumed, FaultPermitRequest, Began, FirstStep, Elastic,
                 Regroup, Released, NewRound, ChecksumRequest, Checksums>;

// Cuts texts to limits::kWorkerReportBytes.
std::string encode(const Message& message);
Result<Message> decode(std::span<const uint8_t> bytes);

// The id of the request to which `message` replies; empty if it is no reply.
std::optional<uint32_t> request_id_of(const Message& message);

}  // namespace cpprun::channel
