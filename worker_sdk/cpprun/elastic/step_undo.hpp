// StepUndo: the state before a training step, of all that the step may change before its optimizer
// begins. Private to elastic.
//
// It keeps copies of buffers, samplers, schedulers and values, which are small, and no parameters,
// apart from those that UpdateWatch compares. One thread. The objects outlive it.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/elastic/elastic_state.hpp"
#include "cpprun/elastic/memory_storages.hpp"
#include "cpprun/elastic/update_watch.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::detail {

class StepUndo {
 public:
  explicit StepUndo(const ElasticState& state);

  // An optimizer has begun its step: parameters may be of no whole step.
  bool has_updated() const;
  // Restores what the step has changed, and the CPU's random numbers; drops the gradients.
  void restore();

 private:
  struct Kept {
    snapshot::Tracked object;
    pickle::Value value;
    MemoryStorages storages;
  };
  struct Buffer {
    at::Tensor buffer, before;
  };

  void keep(const snapshot::Tracked& object);
  void keep_buffers(const torch::nn::Module& module);

  std::vector<Kept> kept_;
  std::vector<Buffer> buffers_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  std::vector<UpdateWatch> watches_;  // of the optimizers
};

}  // namespace cpprun::detail
