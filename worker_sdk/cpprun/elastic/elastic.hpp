/// @file
/// elastic: a training function that outlives the failure of other workers. Python counterpart:
/// cpprun_worker.elastic.
///
///   auto net = std::make_shared<Net>();  // once per process
///   cpprun::elastic({.min_world = 2}, [&](cpprun::ElasticRound& round) {  // and once per round
///     auto group = round.init_process_group({.backend = "gloo"});
///     cpprun::nn::parallel::DistributedDataParallel ddp(net);
///     cpprun::Snapshot snapshot;
///     snapshot.track(ddp).track(optimizer, ddp);
///     for (int64_t step = snapshot.resume().step; step < last;) {
///       train_one_step(ddp);
///       round.commit(++step);
///       snapshot.maybe_save(step, {.every_steps = 1});
///     }
///   });
///
/// When another worker fails, the agent asks this one to regroup. A thread of the connection to the
/// agent ends the connections of the process groups and aborts NCCL's communicators, so that a
/// collective, or backward of DistributedDataParallel, throws; the exception leaves the function,
/// the groups are destroyed, and the agent gives the process its place in the next round, in which
/// the function is called again. Guarantees and limits: docs/how-to/in-process-restart.md. Without
/// an agent, or with one that is too old, the function is called once. Other exceptions leave
/// elastic().
///
/// One thread, and one call at a time: std::logic_error. The environment of the process changes
/// between two calls of the function: no other thread may read or write it then.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cpprun/elastic/elastic_round.hpp"

namespace cpprun {

/// Options of elastic(). Python counterpart: the arguments of cpprun_worker.elastic.
struct ElasticOptions {
  /// With fewer workers in a round the function is not called: std::runtime_error.
  int min_world = 1;
  /// Is called when this worker has left a round, before the agent knows it, on a thread of its
  /// own. If it throws, returns false, or has not ended after health_check_timeout, this worker
  /// ends by HealthCheckError, and the agent starts another in its place.
  std::function<bool()> health_check = {};
  /// Less than the agent's --regroup-timeout of 10 s, after which it stops a worker in any case.
  std::chrono::milliseconds health_check_timeout{5'000};
};

namespace detail {
void run_elastic(const ElasticOptions& options, const std::function<void(ElasticRound&)>& train);
}  // namespace detail

/// Calls train(round) in each round of this process; returns what the last call returns.
template <class Train>
auto elastic(const ElasticOptions& options, Train&& train) {
  using Result = std::invoke_result_t<Train&, ElasticRound&>;
  if constexpr (std::is_void_v<Result>) {
    detail::run_elastic(options, [&train](ElasticRound& round) { train(round); });
  } else {
    std::optional<Result> result;
    detail::run_elastic(options, [&](ElasticRound& round) { result.emplace(train(round)); });
    return std::move(*result);
  }
}

}  // namespace cpprun
