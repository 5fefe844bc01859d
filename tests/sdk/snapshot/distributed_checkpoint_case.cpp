// Reads what twins/distributed_checkpoint.py writes.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <iostream>

#include "cpprun/snapshot/distributed_checkpoint.hpp"
#include "cpprun/snapshot/safetensors.hpp"
#include "tests/sdk/snapshot/error_text.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;
using test::error_text;

// As fsdp() of the twin, with names of a program of one's own.
struct Layers : torch::nn::Module {
  explicit Layers(int64_t width = 33) : first(20, width), second(width, 7) {
    register_module("first", first);
    register_module("second", second);
    register_module("norm", norm);
    register_module("last", last);
  }
  torch::nn::Linear first, second;
  torch::nn::BatchNorm1d norm{7};
  torch::nn::Linear last{7, 1};
};

LoadDistributedCheckpointOptions names() {
  return {.prefix = "model.",
          .names = {{"0.", "first."}, {"2.", "second."}, {"3.", "norm."}, {"4.", "last."}}};
}

// Numbers as the bytes that they are: NaN equals itself, and all dtypes have this.
at::Tensor bits(const at::Tensor& tensor) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  return real.contiguous().view({-1}).view(at::kByte);
}

}  // namespace

// dcp_compare FOLDER FILE: the checkpoint has the tensors of the .safetensors file and no others.
SDK_CASE(dcp_compare) {
  const DistributedCheckpoint checkpoint(args.at(0));
  const Safetensors whole(args.at(1));
  int equal = 0;
  for (const std::string& name : checkpoint.names()) {
    const at::Tensor ours = checkpoint.tensor(name);
    const bool is_equal = whole.contains(name) && ours.sizes() == checkpoint.shape(name) &&
                          at::equal(bits(ours), bits(whole.tensor(name)));
    equal += is_equal ? 1 : 0;
    std::cout << (is_equal ? "equal " : "DIFFERENT ") << name << ' ' << checkpoint.dtype(name)
              << ' ' << ours.sizes() << '\n';
  }
  std::cout << equal << " of " << whole.names().size() << '\n';
  for (const std::string& name : checkpoint.object_names()) {
    std::cout << "object " << name << ' ' << checkpoint.object(name).type_name() << '\n';
  }
  return 0;
}

// dcp_load FOLDER FILE: loads a module by rules; its parameters are those of the file.
SDK_CASE(dcp_load) {
  Layers layers;
  layers.second->to(at::kDouble);
  load_distributed_checkpoint(layers, args.at(0), names());
  const Safetensors whole(args.at(1));
  const auto is_same = [&](const at::Tensor& ours, const std::string& name) {
    return at::equal(ours, whole.tensor(name).to(ours.scalar_type()));
  };
  std::cout << "first " << is_same(layers.first->weight, "model.0.weight") << '\n';
  std::cout << "second " << is_same(layers.second->bias, "model.2.bias") << '\n';
  std::cout << "norm " << is_same(layers.norm->running_var, "model.3.running_var") << '\n';
  std::cout << "batches " << layers.norm->num_batches_tracked.item<int64_t>() << '\n';

  // Into memory with strides of its own.
  const DistributedCheckpoint checkpoint(args.at(0));
  const at::Tensor turned = at::zeros({20, 33}).t();
  checkpoint.read("model.0.weight", turned);
  std::cout << "turned " << is_same(turned, "model.0.weight") << '\n';
  const auto losses = checkpoint.object("train.losses");
  std::cout << "losses " << *losses.items()->at(1).get_if<double>() << '\n';
  std::cout << "rate " << *checkpoint.object("train.rates.lr").get_if<double>() << '\n';
  return 0;
}

// dcp_misfits FOLDER: the message of each kind of error.
SDK_CASE(dcp_misfits) {
  const std::string& path = args.at(0);
  Layers layers, wide(34);
  const at::Tensor before = wide.last->weight.detach().clone();
  auto few = names();
  few.names.pop_back();
  std::cout << "names: " << error_text([&] { load_distributed_checkpoint(layers, path, few); })
            << '\n';
  std::cout << "shape: " << error_text([&] { load_distributed_checkpoint(wide, path, names()); })
            << '\n';
  std::cout << "untouched " << at::equal(before, wide.last->weight.detach()) << '\n';
  auto exact = names();
  exact.exact_dtype = true;
  layers.last->to(at::kDouble);
  std::cout << "exact: " << error_text([&] { load_distributed_checkpoint(layers, path, exact); })
            << '\n';
  auto prefix = names();
  prefix.prefix = "net.";
  std::cout << "prefix: " << error_text([&] { load_distributed_checkpoint(layers, path, prefix); })
            << '\n';
  std::cout << "rule: " << error_text([&] {
    load_distributed_checkpoint(layers, path, {.names = {{"0.", "b.*"}}});
  }) << '\n';
  const DistributedCheckpoint checkpoint(path);
  std::cout << "none: " << error_text([&] { checkpoint.tensor("nothing"); }) << '\n';
  std::cout << "size: " << error_text([&] { checkpoint.read("model.0.bias", at::zeros({3})); })
            << '\n';
  std::cout << "object: " << error_text([&] { checkpoint.object("model.0.bias"); }) << '\n';
  std::cout << "absent: " << error_text([&] { DistributedCheckpoint(path + "/gone"); }) << '\n';
  return 0;
}

// dcp_read FOLDER: reads all; an error ends the program.
SDK_CASE(dcp_read) {
  const DistributedCheckpoint checkpoint(args.at(0));
  for (const std::string& name : checkpoint.names()) checkpoint.tensor(name);
  std::cout << "read " << checkpoint.names().size() << '\n';
  for (const std::string& name : checkpoint.object_names()) checkpoint.object(name);
  return 0;
}
