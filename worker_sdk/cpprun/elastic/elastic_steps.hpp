/// @file
/// ElasticSteps: a training loop that stays in place when another worker fails. Python counterpart:
/// elastic.steps(), elastic.commit() and elastic.data_parallel() of cpprun_worker.
///
///   cpprun::ElasticState state;
///   state.track(net).track(optimizer).track(sampler);
///   cpprun::ElasticSteps steps(1000, state, {.group = {.backend = "gloo"}, .min_world = 2});
///   auto ddp = steps.data_parallel(net);
///   for (const int64_t step : steps) {
///     steps.commit([&] {  // the whole body of the loop
///       optimizer.zero_grad();
///       loss_of(ddp, next_batch(sampler)).backward();
///       optimizer.step();
///     });
///   }
///
/// commit() commits the step when its function returns. If the function ends by an exception
/// because another worker has failed, the step is not committed: the loop meets the replacement in
/// the next round, and begins again with the first step that no worker has committed. Workers that
/// lack a step, such as the replacement, get the state from the lowest rank that has committed most
/// steps. Guarantees and limits: docs/how-to/in-process-restart.md.
///
/// One thread, and one loop or training function of elastic() at a time: std::logic_error. Between
/// two rounds the environment of the process changes: no other thread may read or write it then.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "cpprun/elastic/elastic.hpp"
#include "cpprun/elastic/elastic_commit.hpp"

namespace cpprun {

/// Options of ElasticSteps. Python counterpart: the arguments of elastic.steps().
struct ElasticStepsOptions {
  /// The number of steps that the state contains at the begin. A worker that joins later may be
  /// behind.
  int64_t first = 0;
  /// Loads the state, for instance by Snapshot::resume(), and returns the number of steps that it
  /// contains. Is called on all ranks, after `enter` of on_round(), in a round in which no rank has
  /// completed a step, so at the start and when all workers have been restarted.
  std::function<int64_t(ElasticRound&)> resume = {};
  /// Of the process group of each round.
  dist::InitOptions group = {};
  int min_world = 1;                                      ///< as ElasticOptions::min_world
  std::function<bool()> health_check = {};                ///< as ElasticOptions::health_check
  std::chrono::milliseconds health_check_timeout{5'000};  ///< as in ElasticOptions
};

/// The steps of a training loop that stays in place: a range of step numbers. One thread. It holds
/// the process group of the round, until its end.
class ElasticSteps {
 public:
  class Iterator;

  /// The steps from options.first to stop - 1, each until all workers have committed it. `state`
  /// must outlive this object; all ranks track the same objects. Throws std::invalid_argument for
  /// wrong options.
  ElasticSteps(int64_t stop, ElasticState& state, ElasticStepsOptions options = {});
  ElasticSteps(const ElasticSteps&) = delete;
  ElasticSteps& operator=(const ElasticSteps&) = delete;
  ~ElasticSteps();

  /// Forms the process group, shares the state, and begins the loop. Call it once:
  /// std::logic_error. Throws the errors of init_process_group() and ElasticRound::share_state().
  Iterator begin();
  /// The loop ends when all ranks have committed the last step.
  std::default_sentinel_t end() const { return {}; }

  /// Calls the body of one step, with an ElasticCommit& if it takes one, and commits the step.
  /// Exceptions that follow from the failure of another worker do not leave it.
  template <class Body>
  void commit(Body&& body) {
    if constexpr (std::invocable<Body&, ElasticCommit&>) {
      run_step([&body](ElasticCommit& now) { body(now); });
    } else {
      run_step([&body](ElasticCommit&) { body(); });
    }
  }

  /// The round in which the loop is. Throws std::logic_error before the loop.
  ElasticRound& round() const;

  /// @{
  /// A DistributedDataParallel of the current round. Call it before the loop, on all ranks in the
  /// same order; destroy the result before this object.
  template <class Module>
  [[nodiscard]] ElasticDataParallel<Module> data_parallel(std::shared_ptr<Module> module,
                                                          nn::parallel::DdpOptions options = {}) {
    using Made = ElasticDataParallel<Module>;
    return Made(runner_before_loop(), std::move(module), std::move(options),
                Made::Begin::WithTheLoop);
  }
  template <class Module>
  [[nodiscard]] ElasticDataParallel<Module> data_parallel(torch::nn::ModuleHolder<Module> holder,
                                                          nn::parallel::DdpOptions options = {}) {
    return data_parallel(holder.ptr(), std::move(options));
  }
  /// @}

  /// For what else belongs to a round, such as a Snapshot or further groups: `enter` makes it, on
  /// all ranks, when the group of a round has been made and before the state is shared; `leave`
  /// destroys it before the group, when the round has ended by the failure of another worker, also
  /// if `enter` has thrown. Call it before the loop.
  void on_round(std::function<void(ElasticRound&)> enter, std::function<void()> leave);

 private:
  struct Impl;  // its members have types that are private to elastic
  void advance();
  bool is_done() const;
  int64_t current() const;
  void run_step(const std::function<void(ElasticCommit&)>& body);
  detail::ElasticRunner& runner_before_loop();

  std::unique_ptr<Impl> impl_;
};

/// An iterator of ElasticSteps: its value is the number of the step, the count of those before it.
class ElasticSteps::Iterator {
 public:
  /// @{
  /// As for every input iterator. To advance it is to enter the next round, if the step has ended
  /// by the failure of another worker.
  using value_type = int64_t;
  using difference_type = std::ptrdiff_t;
  int64_t operator*() const { return steps_->current(); }
  Iterator& operator++() {
    steps_->advance();
    return *this;
  }
  void operator++(int) { steps_->advance(); }
  bool operator==(std::default_sentinel_t) const { return steps_->is_done(); }
  /// @}

 private:
  friend class ElasticSteps;
  explicit Iterator(ElasticSteps& steps) : steps_(&steps) {}
  ElasticSteps* steps_;
};

}  // namespace cpprun
