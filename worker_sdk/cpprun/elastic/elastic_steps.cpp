#include "cpprun/elastic/elastic_steps.hpp"

#include <ATen/ATen.h>
#include <cxxabi.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/group/round.hpp"
#include "cpprun/elastic/elastic_runner.hpp"
#include "cpprun/elastic/state_sharing.hpp"
#include "cpprun/elastic/step_undo.hpp"

namespace cpprun {
namespace {

ElasticOptions runner_options(const ElasticStepsOptions& options) {
  return {.min_world = options.min_world,
          .health_check = options.health_check,
          .health_check_timeout = options.health_check_timeout};
}

// Of the collectives so far.
void check_results() {
  if (dist::needs_round_check({})) dist::check_round(dist::local_device());
}

}  // namespace

struct ElasticSteps::Impl {
  Impl(int64_t last, ElasticState& given, ElasticStepsOptions how);

  void enter();
  void enter_once();
  void resume();
  void leave();
  void enter_next();
  void end_or_go_on();
  bool is_everybody_done();
  void begin_step();
  void complete_step();
  bool continues_after(const std::exception_ptr& error);

  const int64_t stop;
  ElasticState& state;
  const ElasticStepsOptions options;
  detail::ElasticRunner runner;
  std::function<void(ElasticRound&)> on_enter = {};
  std::function<void()> on_leave = {};

  std::unique_ptr<ElasticRound> round = nullptr;
  dist::ProcessGroupGuard group = {};
  std::optional<detail::StepUndo> undo = {};  // since commit() was called for this step
  bool has_entered = false;                   // on_enter was called in this round
  bool has_begun = false;
  bool is_committed = false;
  bool is_over = false;  // the round: another worker has failed
  bool is_done = false;
};

ElasticSteps::Impl::Impl(int64_t last, ElasticState& given, ElasticStepsOptions how)
    : stop(last), state(given), options(std::move(how)), runner(runner_options(options)) {
  if (stop < 0 || options.first < 0) {
    throw std::invalid_argument("ElasticSteps: the steps go from " + std::to_string(options.first) +
                                " to " + std::to_string(stop) + ", but must not be negative");
  }
  runner.set_completed(options.first);
}

// Forms the group of the round, and agrees on the step that follows.
void ElasticSteps::Impl::enter() {
  for (;;) {
    try {
      return enter_once();
    } catch (const abi::__forced_unwind&) {
      throw;  // pthread_exit unwinds with this exception
    } catch (...) {
      if (!runner.regroups_after(std::current_exception())) throw;
    }
    leave();
    runner.next_round();
  }
}

void ElasticSteps::Impl::enter_once() {
  round = runner.enter_round();
  group = round->init_process_group(options.group);
  has_entered = true;
  if (on_enter) on_enter(*round);
  if (options.resume) resume();
  detail::share_state(runner, state);
  runner.bind_models();
}

// If no rank has completed a step, and so none has a state to share.
void ElasticSteps::Impl::resume() {
  at::Tensor newest = at::full({1}, runner.completed(), at::kLong).to(dist::local_device());
  dist::all_reduce(newest, dist::ReduceOp::MAX);
  check_results();
  if (newest.item<int64_t>() > options.first) return;
  runner.set_torn(true);  // if this fails, a part of the objects may have changed
  runner.set_completed(options.resume(*round));
  runner.set_torn(false);
}

void ElasticSteps::Impl::leave() {
  if (std::exchange(has_entered, false) && on_leave) on_leave();
  runner.unbind_models();
  dist::leave_round();  // without waiting for collectives, which a lost worker may leave open
  group = {};
}

void ElasticSteps::Impl::enter_next() {
  leave();
  runner.next_round();
  is_over = false;
  enter();
}

// Until all have committed the last step, one that lacks it may need this worker.
void ElasticSteps::Impl::end_or_go_on() {
  while (runner.completed() >= stop) {
    if (is_everybody_done()) {
      is_done = true;
      return runner.close();
    }
    enter_next();
  }
}

bool ElasticSteps::Impl::is_everybody_done() {
  try {
    dist::barrier();
    check_results();
    return true;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    if (!runner.regroups_after(std::current_exception())) throw;
    return false;
  }
}

void ElasticSteps::Impl::begin_step() {
  if (!has_begun || is_done) throw std::logic_error("ElasticSteps::commit: there is no step");
  if (undo) throw std::logic_error("ElasticSteps::commit: this step has been committed already");
  undo.emplace(state);
  is_committed = false;
}

void ElasticSteps::Impl::complete_step() {
  if (std::exchange(is_committed, true)) return;
  runner.commit(runner.completed() + 1);
}

// Whether the loop continues after the body of a step has ended by this exception.
bool ElasticSteps::Impl::continues_after(const std::exception_ptr& error) {
  if (!runner.regroups_after(error)) return false;
  is_over = true;
  if (!is_committed) {
    runner.set_torn(undo->has_updated());
    undo->restore();
  }
  return true;
}

ElasticSteps::ElasticSteps(int64_t stop, ElasticState& state, ElasticStepsOptions options)
    : impl_(std::make_unique<Impl>(stop, state, std::move(options))) {}
ElasticSteps::~ElasticSteps() = default;

ElasticSteps::Iterator ElasticSteps::begin() {
  if (std::exchange(impl_->has_begun, true)) {
    throw std::logic_error("ElasticSteps: its loop has begun already");
  }
  impl_->enter();
  impl_->end_or_go_on();
  return Iterator(*this);
}

void ElasticSteps::advance() {
  if (!impl_->undo) {
    throw std::logic_error("ElasticSteps: the body of the loop must be a call of commit()");
  }
  impl_->undo.reset();
  if (impl_->is_over) impl_->enter_next();
  impl_->end_or_go_on();
}

bool ElasticSteps::is_done() const { return impl_->is_done; }
int64_t ElasticSteps::current() const { return impl_->runner.completed(); }

ElasticRound& ElasticSteps::round() const {
  if (!impl_->round) throw std::logic_error("ElasticSteps::round: the loop has not begun");
  return *impl_->round;
}

void ElasticSteps::on_round(std::function<void(ElasticRound&)> enter, std::function<void()> leave) {
  runner_before_loop();
  impl_->on_enter = std::move(enter);
  impl_->on_leave = std::move(leave);
}

detail::ElasticRunner& ElasticSteps::runner_before_loop() {
  if (impl_->has_begun) throw std::logic_error("ElasticSteps: its loop has begun already");
  return impl_->runner;
}

void ElasticSteps::run_step(const std::function<void(ElasticCommit&)>& body) {
  impl_->begin_step();
  try {
    ElasticCommit now([this] { impl_->complete_step(); });
    body(now);
    impl_->complete_step();
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_exit unwinds with this exception
  } catch (...) {
    if (!impl_->continues_after(std::current_exception())) throw;
  }
}

}  // namespace cpprun
