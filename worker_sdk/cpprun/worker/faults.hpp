// Faults on demand, for tests of recovery: CPPRUN_FAULTS=kill:rank=1,epoch=2,attempt=0
//
// FaultKind: kill (SIGKILL), stop (SIGSTOP), exit (code=N; without cleaning up), throw
// (FaultError), slow (ms=N). Where: rank, node, step, epoch (of training), attempt (restart count),
// round, phase; what is left out fits everywhere. It happens in fault_point: slow at each place
// that fits, the others once in a process. Several are separated by semicolons.
//
// What cpprun makes of a plan (docs/faults.md) says fault=N besides: that number's turn is asked
// for at the agent first, so that it comes as often in the job as the plan says; `request` is done
// by the agent itself; `tell` lets it know where the program is, for the account of what was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::worker {

enum class FaultPhase { Starting, Training, Saving };

struct Fault {
  enum class FaultKind { Kill, Stop, Exit, Throw, Slow, Request, Tell } what = FaultKind::Kill;
  std::optional<int64_t> rank, node, step, epoch, attempt, round;
  std::optional<FaultPhase> phase;
  std::optional<int64_t> number;  // in the job's plan
  int code = 1;
  int64_t slow_ms = 0;
};

struct NamedFault {
  Fault fault;
  std::string text;  // its part of the value
};
// All of a value; empty parts, as behind a last semicolon, are skipped. Error (BadValue) shows the
// whole value and names the word that is wrong and what is known.
Result<std::vector<NamedFault>> parse_faults(std::string_view value);

struct FaultPlace {
  int64_t rank = 0, attempt = 0, round = 0;
  std::optional<int64_t> step{}, epoch{};
  int64_t node = 0;
  FaultPhase phase = FaultPhase::Training;
};
bool fits(const Fault& fault, const FaultPlace& place);

// What `throw` throws.
class FaultError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The training loop is here; does what CPPRUN_FAULTS asks for at this place, if anything, and says
// so on stderr. Costs next to nothing without CPPRUN_FAULTS. Throws std::invalid_argument where
// that is malformed. Any thread. Python: cpprun_worker.fault_point.
void fault_point(std::optional<int64_t> epoch, std::optional<int64_t> step = {});
// The program begins: by cpprun::main.
void fault_point_at_start();
// A snapshot of this step is about to get its final name: by may_commit().
void fault_point_at_save(int64_t step);

}  // namespace cpprun::worker
