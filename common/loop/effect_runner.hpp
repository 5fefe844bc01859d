// EffectRunner: connects a pure core with the loop. It passes events to the core with the current
// time, carries out the core's effects in order, and owns the core's one timer.
//
// The core handles an event at once, also one that comes while an effect is carried out. The
// effects of such an event are carried out after those that wait.
//
// Thread: the loop's. Owner: the owner of the core, which outlives the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <utility>
#include <variant>

#include "common/loop/timer.hpp"
#include "common/machine/clock.hpp"
#include "common/time.hpp"

namespace cpprun {

// All are optional.
struct EffectRunnerHooks {
  std::function<void(Instant now)> after_event{};  // before the effects of the event
  std::function<bool()> may_carry_out{};           // false: the effects wait for resume()
  std::function<void()> after_effects{};           // all that may be carried out are
};

// `Core` has on_time(now, effects) and next_deadline(); `Effects` is a vector of variants.
template <class Core, class Effects>
class EffectRunner {
 public:
  using Effect = typename Effects::value_type;

  // `carry_out` is called with an alternative of Effect.
  template <class CarryOut>
  EffectRunner(boost::asio::io_context& loop, Core& core, CarryOut carry_out,
               EffectRunnerHooks hooks = {})
      : core_(core),
        carry_out_([carry_out](const Effect& effect) { std::visit(carry_out, effect); }),
        hooks_(std::move(hooks)),
        timer_(loop, [this] { run(&Core::on_time); }) {}

  // Calls `event`, a member function of Core or a function, with (core, now, arguments..., effects)
  // and carries out the effects. After close(): does nothing.
  template <class Event, class... Arguments>
  void run(Event event, Arguments&&... arguments) {
    if (is_closed_) return;
    const Instant now = boot_now();
    Effects effects;
    std::invoke(event, core_, now, std::forward<Arguments>(arguments)..., effects);
    if (hooks_.after_event) hooks_.after_event(now);
    for (Effect& effect : effects) queue_.push_back(std::move(effect));
    resume();
  }

  // Carries out waiting effects and sets the timer. To be called after the caller has changed the
  // result of may_carry_out() or, without an event, the core's deadline.
  void resume() {
    if (std::exchange(is_carrying_out_, true)) return;
    while (!queue_.empty() && (!hooks_.may_carry_out || hooks_.may_carry_out())) {
      const Effect effect = std::move(queue_.front());
      queue_.pop_front();
      carry_out_(effect);
    }
    is_carrying_out_ = false;
    if (!is_closed_) timer_.set(core_.next_deadline());
    if (hooks_.after_effects) hooks_.after_effects();
  }

  // Drops waiting effects and stops the timer.
  void close() {
    is_closed_ = true;
    queue_.clear();
    timer_.set(Instant::never());
  }

 private:
  Core& core_;
  const std::function<void(const Effect&)> carry_out_;
  const EffectRunnerHooks hooks_;
  Timer timer_;
  std::deque<Effect> queue_;
  bool is_carrying_out_ = false;
  bool is_closed_ = false;
};

}  // namespace cpprun
