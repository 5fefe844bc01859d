/// @file
/// ElasticModel: the part of ElasticDataParallel that does not depend on the module's type. Private
/// to elastic.
#pragma once

#include <string>

namespace cpprun::detail {

class ElasticRunner;

/// A model whose DistributedDataParallel is made anew in each round. One thread.
class ElasticModel {
 public:
  ElasticModel(const ElasticModel&) = delete;
  ElasticModel& operator=(const ElasticModel&) = delete;

  virtual void bind() = 0;    ///< makes its DistributedDataParallel in the default group
  virtual void unbind() = 0;  ///< destroys it
  /// @{
  /// The order in which it sums gradients, as DdpCore::buckets() and set_buckets().
  virtual std::string buckets() = 0;
  virtual void set_buckets(const std::string& order) = 0;
  /// @}

 protected:
  /// `runner` outlives this object.
  explicit ElasticModel(ElasticRunner& runner);
  virtual ~ElasticModel();

  /// bind(), with the order of the round before.
  void bind_in_order();

 private:
  ElasticRunner& runner_;
};

}  // namespace cpprun::detail
