// States of optimizers and schedulers, in the form of files, into objects that differ from the
// saved ones: of another type, or Python's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpprun/optim/fused.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "tests/sdk/snapshot/held_storages.hpp"
#include "tests/sdk/snapshot/training_support.hpp"

namespace cpprun::snapshot {
namespace {

using test::HeldStorages;

void step(torch::optim::Optimizer& optimizer) {
  for (auto& each : optimizer.param_groups()[0].params()) each.mutable_grad() = at::ones_like(each);
  optimizer.step();
}

// As in Python's load_state_dict: buffers get the parameter's type, counts stay.
TEST(SnapshotStates, BuffersGetTheParametersType) {
  const auto net = test::make_net(), wide = test::make_net();
  torch::optim::AdamW adam(net->parameters());
  step(adam);
  Capture capture;
  const pickle::Value saved = track_optimizer(adam, {}).save(capture);
  wide->to(at::kDouble);
  optim::FusedAdamW fused(wide->parameters());
  track_optimizer(fused, {}).load(saved, HeldStorages(capture.take_storages()));
  EXPECT_NO_THROW(step(fused));
  const auto& state = static_cast<torch::optim::AdamWParamState&>(
      *fused.state().at(wide->last->weight.unsafeGetTensorImpl()));
  EXPECT_EQ(state.exp_avg().scalar_type(), at::kDouble);
  EXPECT_EQ(state.step(), 2);
}

}  // namespace
}  // namespace cpprun::snapshot
