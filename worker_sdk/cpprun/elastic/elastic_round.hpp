/// @file
/// ElasticRound: the job's current round, as this worker sees it; the argument of the function that
/// cpprun::elastic calls. Python counterpart: the argument of a function of cpprun_worker.elastic.
///
/// One thread. It ends with the call of the function.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/elastic/elastic_data_parallel.hpp"
#include "cpprun/elastic/elastic_state.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun {

/// Thrown by ElasticRound::check() when another worker has failed.
class RegroupError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Thrown in a worker whose health check has failed or not ended; it ends the worker.
class HealthCheckError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {
class ElasticRunner;
}

/// The job's current round, from the view of this worker. One thread may use it; any thread may
/// call is_over().
class ElasticRound {
 public:
  ElasticRound(const ElasticRound&) = delete;
  ElasticRound& operator=(const ElasticRound&) = delete;

  /// The number of the round, from 1: CPPRUN_ROUND.
  int64_t number() const { return environment_.round; }
  /// How many restarts the job has made before this round.
  int64_t restart_count() const { return environment_.restart_count; }
  /// This worker's rank in the round, 0 to world_size() - 1.
  int rank() const { return environment_.rank; }
  /// The number of workers of the round.
  int world_size() const { return environment_.world_size; }
  /// This worker's rank on its node, 0 to local_world_size() - 1.
  int local_rank() const { return environment_.local_rank; }
  /// The number of workers on this node.
  int local_world_size() const { return environment_.local_world_size; }
  /// False: this process has been in an earlier round, and what is outside of the function is as
  /// the exception left it.
  bool is_first() const { return is_first_; }
  /// The last step that this process has completed, in any round, or that share_state() has brought
  /// it; 0: none.
  int64_t completed() const;

  /// Another worker has failed: the function should end. Any thread.
  bool is_over() const;
  /// Throws RegroupError if is_over(). For loops without collectives.
  void check() const;

  /// dist::init_process_group with the ranks of this round.
  [[nodiscard]] dist::ProcessGroupGuard init_process_group(dist::InitOptions options = {});

  /// Gives all ranks the state of the one that has committed most steps, the lowest of them, and
  /// binds the samplers to the round. Returns that number of steps; 0: no rank has committed one,
  /// and the objects stay as they are. All ranks call it, after init_process_group() and before
  /// data_parallel(), with the same objects. Throws std::runtime_error if ranks track different
  /// objects.
  int64_t share_state(ElasticState& state);
  /// @{
  /// The same for objects under their default names (ElasticState::track()).
  template <class... Objects>
  int64_t share_state(Objects&&... objects) {
    ElasticState state;
    (state.track(objects), ...);
    return share_state(state);
  }
  /// @}

  /// @{
  /// A DistributedDataParallel that sums gradients in the same order as in the round before: the
  /// last bits of the sums depend on it. All ranks call it, after share_state(). Destroy it before
  /// the group.
  template <class Module>
  [[nodiscard]] ElasticDataParallel<Module> data_parallel(std::shared_ptr<Module> module,
                                                          nn::parallel::DdpOptions options = {}) {
    using Made = ElasticDataParallel<Module>;
    return Made(runner_, std::move(module), std::move(options), Made::Begin::Now);
  }
  template <class Module>
  [[nodiscard]] ElasticDataParallel<Module> data_parallel(torch::nn::ModuleHolder<Module> holder,
                                                          nn::parallel::DdpOptions options = {}) {
    return data_parallel(holder.ptr(), std::move(options));
  }
  /// @}

  /// The state after `step` steps is complete in this process. Call it directly after
  /// optimizer.step(). It is a heartbeat as well, and in the first step of a round with a
  /// data_parallel() a collective. Throws std::invalid_argument if `step` is
  /// negative.
  void commit(int64_t step);

 private:
  friend class detail::ElasticRunner;
  ElasticRound(detail::ElasticRunner& runner, bool is_first);

  detail::ElasticRunner& runner_;
  const worker::Environment& environment_;
  const bool is_first_;
};

}  // namespace cpprun
