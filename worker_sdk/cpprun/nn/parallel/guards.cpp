#include "cpprun/nn/parallel/guards.hpp"

#include <exception>
#include <utility>

#include "cpprun/nn/parallel/ddp_state.hpp"

namespace cpprun::nn::parallel {

NoSyncGuard::NoSyncGuard(std::shared_ptr<DdpState> state, bool on)
    : state_(std::move(state)), before_(state_->requires_backward_sync) {
  if (on) state_->requires_backward_sync = false;
}

NoSyncGuard::~NoSyncGuard() {
  if (state_) state_->requires_backward_sync = before_;
}

JoinGuard::JoinGuard(std::shared_ptr<DdpState> state, const JoinOptions& options)
    : state_(std::move(state)), exceptions_(std::uncaught_exceptions()) {
  state_->begin_join(options);
}

void JoinGuard::finish() {
  if (const auto state = std::exchange(state_, nullptr)) state->finish_join();
}

JoinGuard::~JoinGuard() {
  if (!state_) return;
  const auto state = state_;
  if (std::uncaught_exceptions() > exceptions_) {
    state->end_join();
    return;
  }
  try {
    finish();
  } catch (...) {
    state->broken = std::current_exception();
  }
}

}  // namespace cpprun::nn::parallel
