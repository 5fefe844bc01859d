// ElasticRunner: the rounds of one training function. Private to elastic.
//
// One thread, apart from is_requested().
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "cpprun/elastic/elastic.hpp"

namespace cpprun::worker {
class RegroupLink;
}

namespace cpprun::detail {

class ElasticRunner {
 public:
  // Connects to the agent. Throws std::logic_error if another one exists, std::invalid_argument for
  // wrong options.
  explicit ElasticRunner(const ElasticOptions& options);
  ElasticRunner(const ElasticRunner&) = delete;
  ~ElasticRunner();  // from now on the agent stops this worker as any other

  void run(const std::function<void(ElasticRound&)>& train);

  int64_t completed() const { return completed_; }
  void set_completed(int64_t step) { completed_ = step; }
  bool is_requested() const;

 private:
  void call(const std::function<void(ElasticRound&)>& train);
  void enter_round();
  bool regroups_after(const std::exception_ptr& error);
  void next_round();

  const ElasticOptions options_;
  std::unique_ptr<worker::RegroupLink> link_;  // null: the function is called once
  int64_t completed_ = 0;
  bool is_first_ = true;
};

}  // namespace cpprun::detail
