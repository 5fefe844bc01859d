// Plan: the faults to inject into a job, where and when, and the expected outcome.
// docs/reference/faults.md describes the format, docs/reference/faults.schema.json is its schema.
//
// Pure data with a parser. agent/daemon/faults/fault_injector.hpp and worker/faults.hpp inject the
// faults. A plan may leave choices open (a range of steps, any rank); drawn() in draw.hpp makes
// them from a seed.
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
  Starting,  // at the beginning of the program
  Training,  // in a step of its loop
  Saving     // just before a snapshot gets its final name
};

// Their names in plans, in the order of the values.
inline constexpr const char* kFaultNames[] = {
    "kill", "stop", "exit", "throw", "slow", "kill-agent", "drop-coordinator", "disk-full"};
inline constexpr const char* kPhaseNames[] = {"starting", "training", "saving"};
inline const char* name_of(FaultKind what) { return kFaultNames[static_cast<size_t>(what)]; }
inline const char* name_of(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }

// A number, or an inclusive range from which the seed draws one.
struct Span {
  int64_t from = 0;
  int64_t to = 0;
  bool operator==(const Span&) const = default;
};

// A given rank or node, or any.
struct TargetSelector {
  std::optional<int64_t> number;  // nullopt: any
  uint64_t draw = 0;              // random number for "any"
  // The selected number of `count`; a given number may be beyond.
  int64_t among(int64_t count) const {
    return number ? *number : static_cast<int64_t>(draw % static_cast<uint64_t>(count));
  }
  bool operator==(const TargetSelector&) const = default;
};

struct Fault {
  FaultKind what = FaultKind::Kill;
  // The target: a worker's rank; for faults of an agent also a node.
  std::optional<TargetSelector> rank, node;
  // The position in the program. A missing field matches any position.
  std::optional<Span> step, epoch, round, attempt;
  std::optional<Phase> phase;
  // The time, instead of a position: nanoseconds after the start of the job's first round (or of
  // the given round or attempt), or random with this mean time between injections.
  std::optional<Span> after_ns;
  std::optional<Duration> every;
  int64_t times = 1;  // injections per job, at most
  int exit_code = 1;  // for Exit
  Duration lasts{};   // for Slow, Stop, DiskFull; zero: for ever
  bool operator==(const Fault&) const = default;

  // Injected at a position in the program, not at a time.
  bool is_at_place() const { return step || epoch || phase; }
  // Hits an agent, not a worker.
  bool is_of_agent() const {
    return what == FaultKind::KillAgent || what == FaultKind::DropCoordinator;
  }
  // Only the program itself can inject it.
  bool is_of_program() const {
    return what == FaultKind::Exit || what == FaultKind::Throw || what == FaultKind::Slow;
  }
  // The round continues after it.
  bool is_survived() const {
    return what == FaultKind::Slow || what == FaultKind::DropCoordinator ||
           ((what == FaultKind::Stop || what == FaultKind::DiskFull) && lasts > Duration{});
  }
};

// The expected crc32 of a file that the program writes.
struct FinalHash {
  std::string file;  // a relative path starts at the launcher's working directory
  std::string is;    // 8 hex digits; empty: cpprunctl chaos takes it from a run without faults
  bool operator==(const FinalHash&) const = default;
};

struct Expectations {
  int exit_code = 0;  // of the job
  std::optional<Span> restarts;
  std::optional<Duration> recovery_max;  // from a fault to all workers of the next round spawned
  std::optional<int64_t> lost_steps_max, lost_epochs_max;  // per fault
  std::optional<FinalHash> final_hash;
  bool operator==(const Expectations&) const = default;
};

struct Plan {
  std::string name;   // its file, for reports
  uint64_t seed = 0;  // the command line may override it
  std::vector<Fault> faults;
  std::optional<Expectations> expect;
  bool operator==(const Plan&) const = default;
};

// Parses untrusted input. Error (BadValue): "NAME: plan[1].at.step is ...", with the field, its
// value and the permitted values.
Result<Plan> parse_plan(std::string_view json, const std::string& name);
// The plan as JSON; parse_plan() restores it.
std::string encode(const Plan& plan);

// Whether a value of CPPRUN_FAULTS contains faults (kill:rank=1), not the path of a plan.
bool is_inline(std::string_view value);

// "3", or "3 to 5".
std::string text_of(const Span& span);
// For people: "kill rank 1 at training epoch 3, step 12".
std::string describe(const Fault& fault);

// CPPRUN_FAULTS for the workers of a round with so many ranks and nodes: the faults of a drawn plan
// that have a position in the program, and the request to report the first step. worker/faults.hpp
// parses it.
std::string worker_text(const Plan& plan, int64_t ranks, int64_t nodes);

}  // namespace cpprun::faults
