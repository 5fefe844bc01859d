#include "launcher/cpprun/idle_wait.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>

namespace cpprun {
namespace {

sigset_t only_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

IdleWait::IdleWait(std::optional<Duration> most)
    : is_asked_(most.has_value()),
      idle_(std::make_shared<UniqueFd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  if (most) until_ = begun_ + *most;
  const sigset_t set = only_sigterm();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (!is_asked_) signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

IdleWait::~IdleWait() {
  if (is_asked_) return;
  const sigset_t set = only_sigterm();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::function<void()> IdleWait::when_idle() const {
  return [idle = idle_] { ::eventfd_write(idle->get(), 1); };
}

bool IdleWait::is_over_within(std::optional<Duration> piece) {
  if (!idle_->is_open()) return true;  // out of descriptors: when_idle() could not wake us
  std::optional<Clock::time_point> end = until_;
  if (piece) end = std::min(end.value_or(Clock::time_point::max()), Clock::now() + *piece);
  while (true) {
    using std::chrono::milliseconds;
    pollfd watched[] = {{idle_->get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    int64_t left = -1;
    if (end) left = std::max<int64_t>(0, ceil<milliseconds>(*end - Clock::now()).count());
    const int ready = ::poll(watched, 2, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (ready < 0) continue;  // EINTR by a signal with a handler elsewhere
    if (watched[1].revents != 0) is_asked_ = true;
    if (ready > 0) return true;
    if (until_ && Clock::now() >= *until_) return true;
    if (end && Clock::now() >= *end) return false;
  }
}

std::string IdleWait::limit_text() const {
  if (!until_) return "";
  const auto seconds = ceil<std::chrono::seconds>(*until_ - begun_).count();
  return ", for " + std::to_string(seconds) + " s at most";
}

}  // namespace cpprun
