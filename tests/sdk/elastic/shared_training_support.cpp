#include "tests/sdk/elastic/shared_training_support.hpp"

#include <signal.h>

#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun::test {
namespace {

// A multiple of the batches of 2 and of 4 ranks, so that no batch is padded.
constexpr size_t kSamples = 320;
constexpr size_t kBatch = 8;

const at::Tensor& data_set() {
  static const at::Tensor all = at::randn({static_cast<int64_t>(kSamples), 20},
                                          at::detail::createCPUGenerator(7), at::TensorOptions());
  return all;
}

std::shared_ptr<torch::nn::SequentialImpl> shared_net(at::Device device) {
  using namespace torch::nn;
  torch::manual_seed(0);
  auto net = std::make_shared<SequentialImpl>(Linear(20, 60), BatchNorm1d(60), Tanh(), Dropout(0.0),
                                              Linear(60, 7));
  net->to(device);
  return net;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const ElasticWords& words,
                                                        std::vector<at::Tensor> parameters) {
  if (words.text("optimizer") == "sgd") {
    return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                               torch::optim::SGDOptions(1e-2));
  }
  return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                               torch::optim::AdamWOptions(1e-2));
}

bool is_in_second_round() { return worker::environment_or_default().restart_count == 1; }

}  // namespace

StateDict SharedTraining::FatalState::state_dict() const {
  if (training->words_.text("fault") == "donor" && is_in_second_round()) {
    print_line("dies as the donor");
    ::raise(SIGKILL);
  }
  return {{"steps", training->steps_}};
}

void SharedTraining::FatalState::load_state_dict(const StateDict& state) {
  if (std::get<int64_t>(state.at("steps")) < 0) throw std::runtime_error("negative");
}

SharedTraining::SharedTraining(const ElasticWords& words)
    : words_(words),
      net_(shared_net(words.device())),
      optimizer_(make_optimizer(words, net_->parameters())),
      scheduler_(std::make_unique<optim::StepLR>(
          *optimizer_, optim::StepLROptions{.step_size = 7, .gamma = 0.5})),
      sampler_(kSamples, {.seed = 3}) {
  state_.track(net_).track(*optimizer_).track(*scheduler_).track(sampler_);
  state_.track("scale", scale_).track("steps", steps_);
  if (words.text("fault") == "donor") state_.track("fatal", fatal_);
  if (words.text("fault") == "names" && is_in_second_round()) state_.track("more", fatal_);
}

void SharedTraining::track(Snapshot& snapshot) {
  snapshot.track(net_).track(*optimizer_, net_).track(*scheduler_).track(sampler_);
  snapshot.track("scale", scale_).track("steps", steps_);
}

at::Tensor SharedTraining::next_batch() {
  auto indices = sampler_.next(kBatch);
  while (!indices) {
    sampler_.set_epoch(sampler_.epoch() + 1);
    indices = sampler_.next(kBatch);
  }
  const std::vector<int64_t> rows(indices->begin(), indices->end());
  return data_set().index_select(0, at::tensor(rows, at::kLong));
}

}  // namespace cpprun::test
