/// @file
/// Scope guards of DistributedDataParallel. They may outlive it.
#pragma once

#include <memory>

#include "cpprun/nn/parallel/ddp_options.hpp"

namespace cpprun::nn::parallel {

struct DdpState;  ///< ddp_state.hpp

/// Within its scope, backward accumulates gradients without averaging. Can be nested. Python:
/// DistributedDataParallel.no_sync.
class NoSyncGuard {
 public:
  /// For DistributedDataParallel::no_sync(). `on` false: the guard changes nothing.
  NoSyncGuard(std::shared_ptr<DdpState> state, bool on);
  /// Moves the duty to restore the averaging.
  NoSyncGuard(NoSyncGuard&& other) noexcept = default;
  NoSyncGuard& operator=(NoSyncGuard&&) = delete;
  ~NoSyncGuard();

 private:
  std::shared_ptr<DdpState> state_;
  bool before_;
};

/// Put it around a loop over uneven data. A rank that has no more data waits in finish() and
/// answers the collectives of the others; at the end all ranks have the model of a rank that
/// finished last. Python: DistributedDataParallel.join. Unlike there, later forwards have no extra
/// cost.
class JoinGuard {
 public:
  /// For DistributedDataParallel::join().
  JoinGuard(std::shared_ptr<DdpState> state, const JoinOptions& options);
  /// Moves the duty to call finish().
  JoinGuard(JoinGuard&& other) noexcept = default;
  JoinGuard& operator=(JoinGuard&&) = delete;
  /// Calls finish(), unless it was called or an exception unwinds the stack. The next forward
  /// throws the errors of that call.
  ~JoinGuard();

  /// Blocks until all ranks have finished. Throws JoinTerminatedError if throw_on_early_termination
  /// and other ranks still have data, and errors of the backend.
  void finish();

 private:
  std::shared_ptr<DdpState> state_;
  int exceptions_;  // uncaught when the guard was made
};

}  // namespace cpprun::nn::parallel
