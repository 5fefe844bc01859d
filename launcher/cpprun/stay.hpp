// Stay: a launcher whose own part is over waits, since other agents still need the coordinator in
// its process. SIGTERM ends the wait and nothing else: the exit code is known by then.
//
// From its construction on SIGTERM is blocked in this thread, as it is in all others. So it is made
// before the agent gives the signals their default effect back.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "common/time.hpp"

namespace cpprun {

class Stay {
 public:
  // `most`: a signal has asked this process to leave. The wait takes no longer, and a further
  // SIGTERM changes nothing. Nothing: none has.
  explicit Stay(std::optional<Duration> most);
  ~Stay();  // SIGTERM ends the process again, unless it was asked to leave: then the end is near
  Stay(const Stay&) = delete;

  // Whoever sees that nobody needs this process any more calls it: any thread, any time.
  std::function<void()> when_idle() const;

  // Waits until when_idle() is called, SIGTERM comes or the time is over; for `piece` at most.
  // False: it goes on.
  bool is_over_within(std::optional<Duration> piece);

  bool is_asked() const { return is_asked_; }
  // ", for 12 s at most"; "" where nothing limits it.
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
