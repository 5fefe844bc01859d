#include "agent/core/warm_up.hpp"

namespace cpprun::agent {

void WarmUp::begin(size_t workers) {
  *this = WarmUp();
  workers_ = workers;
}

void WarmUp::connected(LocalRank worker, Instant now) {
  connected_.workers.insert(worker.value);
  connected_.last = now;
}

// What a worker says after its first step is none of the way there.
void WarmUp::loaded(LocalRank worker, Instant now) {
  if (stepped_.contains(worker.value)) return;
  loaded_.workers.insert(worker.value);
  loaded_.last = now;
}

bool WarmUp::stepped(LocalRank worker) {
  return stepped_.insert(worker.value).second && stepped_.size() == workers_;
}

std::optional<Instant> WarmUp::when(const Said& said) const {
  if (workers_ == 0 || said.workers.size() < workers_) return std::nullopt;
  return said.last;
}

}  // namespace cpprun::agent
