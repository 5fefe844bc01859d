// ElasticRunner: the rounds of one training function, or of one loop that stays in place. Private
// to elastic.
//
// One thread, apart from is_requested().
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpprun/elastic/elastic.hpp"

namespace cpprun::worker {
class RegroupLink;
}

namespace cpprun::detail {

class ElasticModel;

class ElasticRunner {
 public:
  // Connects to the agent. Throws std::logic_error if another one exists, std::invalid_argument for
  // wrong options.
  explicit ElasticRunner(const ElasticOptions& options);
  ElasticRunner(const ElasticRunner&) = delete;
  ~ElasticRunner();  // from now on the agent stops this worker as any other

  void run(const std::function<void(ElasticRound&)>& train);

  // The parts of run(), for a loop that stays in place: the round that begins, with its groups
  // still to be made;
  std::unique_ptr<ElasticRound> enter_round();
  // whether the exception follows from the failure of another worker, for which it waits a moment;
  bool regroups_after(const std::exception_ptr& error);
  // leaves the round and waits for the next one. Throws HealthCheckError, std::runtime_error.
  void next_round();
  // From now on the agent stops this worker as any other.
  void close();

  bool is_requested() const;
  // The steps that the state of this process contains.
  int64_t completed() const { return completed_; }
  void set_completed(int64_t step) { completed_ = step; }
  // The objects are of no whole step.
  bool is_torn() const { return is_torn_; }
  void set_torn(bool is_torn) { is_torn_ = is_torn; }

  // The step is complete. In the first step of a round it notes the order in which gradients are
  // summed, which is a collective.
  void commit(int64_t step);
  // Of each model, in the order of their construction; empty: not known.
  const std::vector<std::string>& bucket_orders() const { return bucket_orders_; }
  void set_bucket_orders(std::vector<std::string> orders) { bucket_orders_ = std::move(orders); }

  void add_model(ElasticModel& model) { models_.push_back(&model); }
  void remove_model(const ElasticModel& model);
  // Makes the model's DistributedDataParallel in the current group, with the order of the round
  // before.
  void bind_model(ElasticModel& model);
  void bind_models();
  void unbind_models();

 private:
  void note_bucket_orders();

  const ElasticOptions options_;
  std::unique_ptr<worker::RegroupLink> link_;  // null: there are no other rounds
  int64_t completed_ = 0;
  bool is_first_ = true;
  bool is_torn_ = false;
  std::vector<ElasticModel*> models_;
  bool has_new_models_ = false;  // whose orders are not noted
  std::vector<std::string> bucket_orders_;
};

}  // namespace cpprun::detail
