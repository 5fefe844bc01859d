/// @file
/// Fault injection for tests of recovery: CPPRUN_FAULTS=kill:rank=1,epoch=2,attempt=0
///
/// Kinds: kill (SIGKILL), stop (SIGSTOP), exit (code=N; without clean-up), throw (FaultError), slow
/// (ms=N). Conditions: rank, node, step, epoch, attempt (restart count), round, phase. An omitted
/// condition matches everything, an omitted phase everything but saving. fault_point carries faults
/// out: slow at every match, the others once per process. Semicolons separate several faults.
///
/// cpprun translates a fault plan (docs/reference/faults.md) into this variable and adds fault=N:
/// before the worker carries out such a fault it asks the agent for a fault permit, so that the
/// fault happens as often in the whole job as the plan allows. `ask`: the agent carries the fault
/// out itself. `report`: the worker reports its progress, for the account of what the fault cost.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::worker {

/// Which call asks. Starting: cpprun::main. Training: fault_point(). Saving: request_commit(), just
/// before a snapshot gets its final name.
enum class FaultPhase { Starting, Training, Saving };

/// One fault of CPPRUN_FAULTS: what happens, and when.
struct Fault {
  /// Kill, Stop, Exit, Throw and Slow are the kinds of the same names. Request is `ask`: the agent
  /// carries the fault out. ReportProgress is `report`: no fault, only the report of each step.
  enum class FaultKind {
    Kill,
    Stop,
    Exit,
    Throw,
    Slow,
    Request,
    ReportProgress
  } what = FaultKind::Kill;  ///< the kind
  /// @{
  /// The condition of this name; empty: any value matches.
  std::optional<int64_t> rank, node, step, epoch, attempt, round;
  /// @}
  /// Empty: any phase but Saving; with `number`, Training only.
  std::optional<FaultPhase> phase;
  std::optional<int64_t> number;  ///< in the job's fault plan
  int code = 1;                   ///< exit code of Exit, 0 to 255
  int64_t slow_ms = 0;            ///< duration of Slow in milliseconds, at most a day
};

/// A fault with its text, for messages.
struct NamedFault {
  Fault fault;       ///< as parsed
  std::string text;  ///< the fault's part of CPPRUN_FAULTS
};
/// Parses the value of CPPRUN_FAULTS and skips empty parts. Error (BadValue): shows the whole
/// value, the wrong word and the known ones.
Result<std::vector<NamedFault>> parse_faults(std::string_view value);

/// Where a worker is: what conditions are compared with.
struct FaultPlace {
  /// @{
  /// As in Environment.
  int64_t rank = 0, attempt = 0, round = 0;
  /// @}
  /// @{
  /// As the program has passed them to fault_point(); empty: it has not.
  std::optional<int64_t> step{}, epoch{};
  /// @}
  int64_t node = 0;                         ///< Environment::group_rank
  FaultPhase phase = FaultPhase::Training;  ///< which call asks
};
/// True if `place` meets all conditions of `fault`.
bool fits(const Fault& fault, const FaultPlace& place);

/// Thrown by a fault of kind `throw`.
class FaultError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Marks a place in the training loop: carries out the faults of CPPRUN_FAULTS that match, and
/// reports each on stderr first. Costs next to nothing without CPPRUN_FAULTS. Throws
/// std::invalid_argument if CPPRUN_FAULTS is malformed. Any thread. Python:
/// cpprun_worker.fault_point.
void fault_point(std::optional<int64_t> epoch, std::optional<int64_t> step = {});
/// The same for phase=starting; called by cpprun::main.
void fault_point_at_start();
/// The same for phase=saving, just before a snapshot is renamed; called by request_commit.
void fault_point_at_save(int64_t step);

}  // namespace cpprun::worker
