#include "agent/core/file_timers.hpp"

#include <algorithm>

#include "common/limits/agent.hpp"

namespace cpprun::agent {

bool FileTimers::take(const TimerRequest& request) {
  const std::pair key{request.pid, request.scope};
  if (request.expires_at < 0) {
    timers_.erase(key);
    return true;
  }
  if (!timers_.contains(key) && timers_.size() >= limits::kFileTimers) return false;
  timers_[key] = request;
  return true;
}

std::vector<TimerRequest> FileTimers::expire(double now) {
  std::vector<TimerRequest> over;
  std::erase_if(timers_, [&](const auto& item) {
    if (item.second.expires_at > now) return false;
    over.push_back(item.second);
    return true;
  });
  std::ranges::stable_sort(over, {}, &TimerRequest::expires_at);
  std::vector<TimerRequest> first;
  for (const TimerRequest& timer : over) {
    const bool is_known = std::ranges::count(first, timer.pid, &TimerRequest::pid) > 0;
    if (timer.signal <= 0 || is_known) continue;
    first.push_back(timer);
    std::erase_if(timers_, [&](const auto& item) { return item.first.first == timer.pid; });
  }
  return first;
}

std::optional<double> FileTimers::next() const {
  std::optional<double> next;
  for (const auto& [key, timer] : timers_) {
    next = std::min(next.value_or(timer.expires_at), timer.expires_at);
  }
  return next;
}

}  // namespace cpprun::agent
