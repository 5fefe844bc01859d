/// @file
/// ElasticCommit: commits a step of ElasticSteps before the end of its body. Python counterpart:
/// the object of `with elastic.commit() as commit` of cpprun_worker.
#pragma once

#include <functional>
#include <utility>

namespace cpprun {

/// Commits a step before the end of its body. One thread; it ends with the body.
class ElasticCommit {
 public:
  /// For ElasticSteps.
  explicit ElasticCommit(std::function<void()> commit) : commit_(std::move(commit)) {}
  ElasticCommit(const ElasticCommit&) = delete;
  ElasticCommit& operator=(const ElasticCommit&) = delete;

  /// The step is complete. What follows in the body may fail, and the step is not made again:
  /// collectives whose results change no state, such as the sum of a loss.
  void now() { commit_(); }

 private:
  const std::function<void()> commit_;
};

}  // namespace cpprun
