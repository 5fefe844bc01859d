#include "agent/core/startup_progress.hpp"

namespace cpprun::agent {

void StartupProgress::begin(size_t workers) {
  *this = StartupProgress();
  workers_ = workers;
}

void StartupProgress::connected(LocalRank worker, Instant now) {
  connected_.workers.insert(worker.value);
  connected_.last = now;
}

// A snapshot that is loaded after the first step is no part of the startup.
void StartupProgress::loaded(LocalRank worker, Instant now) {
  if (stepped_.contains(worker.value)) return;
  loaded_.workers.insert(worker.value);
  loaded_.last = now;
}

bool StartupProgress::stepped(LocalRank worker) {
  return stepped_.insert(worker.value).second && stepped_.size() == workers_;
}

std::optional<Instant> StartupProgress::when(const Reached& reached) const {
  if (workers_ == 0 || reached.workers.size() < workers_) return std::nullopt;
  return reached.last;
}

}  // namespace cpprun::agent
