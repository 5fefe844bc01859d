// IdleWait: the wait of a launcher whose agent has ended, because other agents still need the
// coordinator in its process. SIGTERM ends only the wait: the exit code is already fixed.
//
// The constructor blocks SIGTERM in this thread; all other threads block it already. So construct
// it before the agent restores the default signal actions.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "common/time.hpp"

namespace cpprun {

// A process that stays for other agents logs the reason after this time.
constexpr Duration kStayReminderInterval = std::chrono::seconds(1);

class IdleWait {
 public:
  // `most` is given if a signal has asked this process to exit: the wait takes no longer, and a
  // further SIGTERM has no effect.
  explicit IdleWait(std::optional<Duration> most);
  ~IdleWait();  // unblocks SIGTERM, unless the process was asked to exit and so is about to end
  IdleWait(const IdleWait&) = delete;

  // The callback ends the wait. Callable from any thread, at any time.
  std::function<void()> when_idle() const;

  // Waits until when_idle()'s callback runs, SIGTERM arrives or the time is over, for `piece` at
  // most. False: the wait is not over.
  bool is_over_within(std::optional<Duration> piece);

  bool is_asked() const { return is_asked_; }
  // ", for 12 s at most"; "" without a limit.
  std::string limit_text() const;

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point begun_ = Clock::now();
  std::optional<Clock::time_point> until_;
  bool is_asked_;
  std::shared_ptr<UniqueFd> idle_;
  UniqueFd signals_;
};

}  // namespace cpprun
