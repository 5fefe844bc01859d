// Scopes in which a DistributedDataParallel behaves differently. Both may outlive it, harmlessly.
#pragma once

#include <memory>

#include "cpprun/nn/parallel/ddp_options.hpp"

namespace cpprun::nn::parallel {

struct DdpState;  // ddp_state.hpp

// While it lives, backward adds up gradients without averaging them. Nests.
class NoSyncGuard {
 public:
  NoSyncGuard(std::shared_ptr<DdpState> state, bool on);
  NoSyncGuard(NoSyncGuard&& other) noexcept = default;
  NoSyncGuard& operator=(NoSyncGuard&&) = delete;
  ~NoSyncGuard();

 private:
  std::shared_ptr<DdpState> state_;
  bool before_;
};

// Put it around the loop over uneven data. A rank that ran out first stays in finish() and answers
// the collectives of the others; at the end all have the model of a rank that was last. Beyond
// Python's: the answers end with the guard, so later forwards cost nothing extra.
class JoinGuard {
 public:
  JoinGuard(std::shared_ptr<DdpState> state, const JoinOptions& options);
  JoinGuard(JoinGuard&& other) noexcept = default;
  JoinGuard& operator=(JoinGuard&&) = delete;
  // Calls finish() unless that was done or an exception is on its way. What goes wrong here is
  // thrown by the next forward, since destructors don't throw.
  ~JoinGuard();

  // Blocks until all ranks have got here. Throws JoinTerminatedError with
  // throw_on_early_termination when others still have data, and errors of the backend.
  void finish();

 private:
  std::shared_ptr<DdpState> state_;
  int exceptions_;  // on their way when the guard was made
};

}  // namespace cpprun::nn::parallel
