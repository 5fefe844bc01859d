// Goodput: how a job has used its time, by phase, and the texts that report it. The phases are
// disjoint and cover all of the time. docs/how-to/goodput.md explains each phase. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "common/time.hpp"

namespace cpprun {

enum class GoodputPhase {
  Waiting,       // for other nodes, or for the coordinator
  Starting,      // the launcher, files of a round, a fetched snapshot, the spawns
  Importing,     // the workers load the interpreter and their libraries
  Initialising,  // from there to the first step
  Training,      // steps that no earlier round had done
  Redone,        // steps that an earlier round had done already
  Saving,        // training waits for a save
  Hanging,       // from the last sign of progress until the hang was found
  Stopping,      // from a failure or a stop request until all workers are gone
  Unknown,       // workers ran and reported no step
};
inline constexpr size_t kGoodputPhases = 10;

// "waiting", "redone".
const char* name_of(GoodputPhase phase);

// Of one submission of the job, or of several: a scheduler or a user may start it again.
struct Goodput {
  std::array<Duration, kGoodputPhases> spent{};
  int64_t failures = 0;  // rounds that ended by a failure, a hang or a lost node
  int64_t restarts = 0;  // rounds after the first one of a submission
  int64_t submissions = 1;

  Duration& operator[](GoodputPhase phase) { return spent[static_cast<size_t>(phase)]; }
  Duration operator[](GoodputPhase phase) const { return spent[static_cast<size_t>(phase)]; }
  Duration total() const { return std::accumulate(spent.begin(), spent.end(), Duration{}); }
  // The share of training in the whole, 0 to 1. nullopt: no worker has reported a step.
  std::optional<double> share() const;

  Goodput& operator+=(const Goodput& other);
  Goodput& operator-=(const Goodput& part);  // of *this
  bool operator==(const Goodput&) const = default;
};

// What --state-dir keeps of a job's goodput.
struct GoodputRecord {
  Goodput earlier{.submissions = 0};  // of the submissions before the newest one
  Goodput newest;
  std::string submission{};  // which one is the newest; "": it had no round
  int64_t best_step = -1;    // the last step that any round had finished; -1: unknown
};

// "6 h 12 min", "4 min", "12.3 s": two units at most.
std::string long_duration_text(Duration duration);

// "trained 97.1 % of 6 h 12 min; lost: 4 min redone steps, 3 min imports". The greatest losses
// first. If no worker has reported a step, the text gives the share of training as unknown. Of
// several submissions it begins with "trained 97.1 % of 6 h 12 min in 3 submissions".
std::string goodput_line(const Goodput& goodput);
// "this submission trained 96.0 % of 2 h 4 min".
std::string own_part_text(const Goodput& own);

}  // namespace cpprun
