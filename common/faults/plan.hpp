// Plan: which faults a job is to meet, where, and what must hold afterwards. docs/faults.md has the
// format for people, docs/faults.schema.json for programs.
//
// Pure data and its reader; who carries a fault out is elsewhere
// (agent/daemon/faults/fault_injector.hpp, worker/faults.hpp). A plan as read may leave choices
// open (a range of steps, any rank): drawn() in draw.hpp settles them by a seed. Threads: none of
// its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::faults {

enum class FaultKind { Kill, Stop, Exit, Throw, Slow, KillAgent, DropCoordinator, DiskFull };
enum class Phase {
  Starting,  // the program begins
  Training,  // a step of its loop
  Saving     // just before a snapshot gets its final name
};

// A number, or all of them from which the seed draws one. Ends included.
struct Span {
  int64_t from = 0;
  int64_t to = 0;
  bool operator==(const Span&) const = default;
};

// A rank or a node: a given one, or any.
struct TargetSelector {
  std::optional<int64_t> number;  // nothing: any
  uint64_t draw = 0;              // of the seed, for any
  // Its number among `count`; what was given may lie beyond.
  int64_t among(int64_t count) const {
    return number ? *number : static_cast<int64_t>(draw % static_cast<uint64_t>(count));
  }
  bool operator==(const TargetSelector&) const = default;
};

struct Fault {
  FaultKind what = FaultKind::Kill;
  // Whom it hits: a worker's rank, or for what concerns an agent also a node.
  std::optional<TargetSelector> rank, node;
  // Where: what is left out fits everywhere.
  std::optional<Span> step, epoch, round, attempt;
  std::optional<Phase> phase;
  // When, instead of a place in the program: so many nanoseconds after the start of the job's first
  // round (of the named round or attempt), or at random with this mean time between two.
  std::optional<Span> after_ns;
  std::optional<Duration> every;
  int64_t times = 1;  // at most so often in the job
  int exit_code = 1;  // of Exit
  Duration lasts{};   // of Slow, Stop, DiskFull; zero: for good
  bool operator==(const Fault&) const = default;

  // It strikes where the program is, not at a time.
  bool is_at_place() const { return step || epoch || phase; }
  // It concerns an agent, not a worker.
  bool is_of_agent() const {
    return what == FaultKind::KillAgent || what == FaultKind::DropCoordinator;
  }
  // Only the program itself can do it.
  bool is_of_program() const {
    return what == FaultKind::Exit || what == FaultKind::Throw || what == FaultKind::Slow;
  }
  // The round can go on afterwards.
  bool is_survived() const {
    return what == FaultKind::Slow || what == FaultKind::DropCoordinator ||
           ((what == FaultKind::Stop || what == FaultKind::DiskFull) && lasts > Duration{});
  }
};

// A file that the program leaves behind, and the crc32 that it must have.
struct FinalHash {
  std::string file;  // relative: to the launcher's folder
  std::string is;    // 8 hex digits; empty: as without faults, which cpprunctl chaos finds out
  bool operator==(const FinalHash&) const = default;
};

struct Expectations {
  int exit_code = 0;  // of the job
  std::optional<Span> restarts;
  std::optional<Duration> recovery_max;  // from a fault to all workers of the next round spawned
  std::optional<int64_t> lost_steps_max, lost_epochs_max;  // for each fault
  std::optional<FinalHash> final_hash;
  bool operator==(const Expectations&) const = default;
};

struct Plan {
  std::string name;   // for reports: the file it came from
  uint64_t seed = 0;  // unless the command line gives one
  std::vector<Fault> faults;
  std::optional<Expectations> expect;
  bool operator==(const Plan&) const = default;
};

// Reads a plan; hostile bytes welcome. Error (BadValue): "NAME: plan[1].at.step is ...", which
// field, what it is, and what it may be.
Result<Plan> parse_plan(std::string_view json, const std::string& name);
// The plan as JSON: parse_plan() reads the same from it.
std::string encode(const Plan& plan);

// Whether a value of CPPRUN_FAULTS is faults in words (kill:rank=1), and not the file of a plan.
bool is_inline(std::string_view value);

// The word of the plan: "kill-agent".
const char* name_of(FaultKind what);
// One fault for people: "kill rank 1 at training epoch 3, step 12".
std::string describe(const Fault& fault);

// What a program is told in CPPRUN_FAULTS: a settled plan's faults that strike at places, and to
// tell where it begins. worker/faults.hpp reads it. For a world of so many ranks and nodes.
std::string worker_text(const Plan& plan, int64_t ranks, int64_t nodes);

}  // namespace cpprun::faults
