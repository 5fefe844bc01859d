// batch_isend_irecv and the coalesced collectives over a backend that makes one operation of all,
// as NCCL does. No GPU is needed: a backend of the test stands in for it.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist {
namespace {

class EndedWork : public c10d::Work {
 public:
  EndedWork() { finish(); }
};

// Receives arrive at the end of the coalesced operation: 1, 2, 3, ... in each tensor.
class CoalescingBackend : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Pointer = c10::intrusive_ptr<c10d::Work>;
  CoalescingBackend() : Backend(0, 2) {}
  const std::string getBackendName() const override { return "coalescing"; }
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override { is_open = true; }
  Pointer send(Tensors&, int, int) override { return is_open ? Pointer() : ended(); }
  Pointer recv(Tensors& tensors, int, int) override {
    received.push_back(tensors.at(0));
    return is_open ? Pointer() : ended();
  }
  Pointer endCoalescing() override {
    for (const at::Tensor& each : received) {
      each.copy_(at::arange(1, each.numel() + 1, each.options()).view_as(each));
    }
    is_open = false;
    return ended();
  }

  Pointer allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    reduced.push_back({tensors.size(), options.reduceOp.op_ == c10d::ReduceOp::AVG});
    for (const at::Tensor& each : tensors) each.add_(1);
    return ended();
  }
  Pointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions&) override {
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].copy_(inputs[i].repeat({2}));
    return ended();
  }
  Pointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions&) override {
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].copy_(inputs[i].chunk(2)[0]);
    return ended();
  }

  struct Reduced {
    size_t tensors;
    bool is_average;
  };
  bool is_open = false;
  Tensors received;
  std::vector<Reduced> reduced;

 private:
  static Pointer ended() { return c10::make_intrusive<EndedWork>(); }
};

class Coalesced : public ::testing::Test {
 protected:
  Coalesced() {
    state_->pg =
        c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0, 2);
    state_->pg->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM, backend_);
    state_->pg->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
    state_->ranks = {0, 1};
    state_->rank = 0;
    state_->timeout = std::chrono::seconds(5);
  }
  ProcessGroup group() const { return ProcessGroup(state_); }

  const c10::intrusive_ptr<CoalescingBackend> backend_ = c10::make_intrusive<CoalescingBackend>();
  const std::shared_ptr<ProcessGroup::State> state_ = std::make_shared<ProcessGroup::State>();
};

TEST_F(Coalesced, ReceivesIntoTensorsThatAreNotContiguous) {
  const at::Tensor transposed = torch::zeros({3, 2}).t();
  const at::Tensor column = torch::zeros({4, 2}).select(1, 1);
  const at::Tensor plain = torch::zeros({2});
  auto works = batch_isend_irecv({{P2POp::Kind::Recv, transposed, 1},
                                  {P2POp::Kind::Send, torch::ones({2}), 1},
                                  {P2POp::Kind::Recv, column, 1},
                                  {P2POp::Kind::Recv, plain, 1}},
                                 group());
  ASSERT_EQ(works.size(), 1U);
  works[0].wait();
  EXPECT_TRUE(at::equal(transposed, torch::arange(1, 7, at::kFloat).view({2, 3})));
  EXPECT_TRUE(at::equal(column, torch::arange(1, 5, at::kFloat)));
  EXPECT_TRUE(at::equal(plain, torch::arange(1, 3, at::kFloat)));
}

TEST_F(Coalesced, RefusesBeforeItStarts) {
  EXPECT_THROW(batch_isend_irecv({{P2POp::Kind::Send, torch::ones({2}), 1},
                                  {P2POp::Kind::Recv, torch::ones({2}), -1}},
                                 group()),
               DistUnsupportedError);
  EXPECT_FALSE(backend_->is_open);
}

TEST_F(Coalesced, ReducesAllTensorsInOneCallWithTheBackendsAverage) {
  const at::Tensor transposed = torch::zeros({3, 2}).t();
  const at::Tensor plain = torch::zeros({2});
  all_reduce_coalesced({transposed, plain}, ReduceOp::AVG, {.group = group()});
  ASSERT_EQ(backend_->reduced.size(), 1U);
  EXPECT_EQ(backend_->reduced[0].tensors, 2U);
  EXPECT_TRUE(backend_->reduced[0].is_average);
  EXPECT_TRUE(at::equal(transposed, torch::ones({2, 3})));
  EXPECT_TRUE(at::equal(plain, torch::ones({2})));
}

TEST_F(Coalesced, GathersAndScattersAllTensorsInOneCall) {
  const at::Tensor all = torch::zeros({2, 2}), scalar = torch::zeros({2});
  all_gather_into_tensor_coalesced({all, scalar}, {torch::ones({2}), torch::full({1}, 5.0)},
                                   {.group = group()});
  EXPECT_TRUE(at::equal(all, torch::ones({2, 2})));
  EXPECT_TRUE(at::equal(scalar, torch::full({2}, 5.0)));
  const at::Tensor part = torch::zeros({1}), other = torch::zeros({2});
  auto work = reduce_scatter_tensor_coalesced({part, other}, {torch::ones({2}), torch::ones({4})},
                                              ReduceOp::MAX, {.group = group(), .async_op = true});
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(at::equal(at::cat({part, other}), torch::ones({3})));
}

}  // namespace
}  // namespace cpprun::dist
