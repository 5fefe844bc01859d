// Training runs of 200 steps, one for each requested mode of DistributedDataParallel; prints each
// loss and a hash of the result. twins/ddp_train.py is the same in Python: the lines must be equal.
#include <functional>
#include <map>
#include <optional>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "tests/sdk/nn/nets.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {
namespace {

namespace parallel = nn::parallel;
using parallel::DdpOptions;

constexpr int kSteps = 200;
constexpr int kMicroSteps = 3;

std::string mode;              // of this run; begins each line
at::Device device = at::kCPU;  // of models and data

std::string line_start(const char* what) {
  return mode + " " + what + " " + std::to_string(dist::get_rank()) + " ";
}

void print_loss(int step, const at::Tensor& loss) {
  print_line(line_start("loss") + std::to_string(step) + " " + digits(loss.item<double>()));
}

template <class Ddp>
void print_end(Ddp& ddp) {
  print_line(line_start("end") + std::to_string(hash_of(ddp.module())));
}

// Rank 0's weights must win, so the others start with different ones.
template <class Net>
std::shared_ptr<Net> make_net() {
  torch::manual_seed(7);
  auto net = std::make_shared<Net>();
  const torch::NoGradGuard no_grad;
  for (auto& parameter : net->parameters()) parameter.add_(static_cast<double>(dist::get_rank()));
  net->to(device);
  return net;
}

torch::optim::SGD make_sgd(const std::vector<at::Tensor>& parameters) {
  return torch::optim::SGD(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
}

struct Setup {
  DdpOptions options;
  std::optional<parallel::CommHook> hook;
};

const auto kCall = [](auto& ddp, const at::Tensor& x) { return ddp(x); };

template <class Net, class Forward = decltype(kCall)>
int train_plainly(const Setup& setup, Forward forward = kCall) {
  parallel::DistributedDataParallel ddp(make_net<Net>(), setup.options);
  if (setup.hook) ddp.register_comm_hook(*setup.hook);
  auto sgd = make_sgd(ddp.parameters());
  Batches batches(dist::get_rank(), device);
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = batches.next();
    ddp.zero_grad();
    const at::Tensor loss = torch::mse_loss(forward(ddp, batch.x), batch.y);
    loss.backward();
    sgd.step();
    print_loss(step, loss);
  }
  print_end(ddp);
  return 0;
}

int train_accumulating(const Setup& setup) {
  parallel::DistributedDataParallel ddp(make_net<Mlp>(), setup.options);
  auto sgd = make_sgd(ddp.parameters());
  Batches batches(dist::get_rank(), device);
  for (int step = 0; step < kSteps; ++step) {
    ddp.zero_grad(/*set_to_none=*/!setup.options.gradient_as_bucket_view);
    at::Tensor loss;
    for (int micro = 0; micro < kMicroSteps; ++micro) {
      const Batch batch = batches.next();
      const auto guard = ddp.no_sync_if(micro + 1 < kMicroSteps);
      loss = torch::mse_loss(ddp(batch.x), batch.y);
      loss.backward();
    }
    sgd.step();
    print_loss(step, loss);
  }
  print_end(ddp);
  return 0;
}

// `differs`: the used head changes with rank and step.
int train_branches(const Setup& setup, bool differs) {
  parallel::DistributedDataParallel ddp(make_net<Branches>(), setup.options);
  auto sgd = make_sgd(ddp.parameters());
  Batches batches(dist::get_rank(), device);
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = batches.next();
    ddp.zero_grad();
    const bool goes_left = !differs || (step + dist::get_rank()) % 2 == 0;
    const at::Tensor loss = torch::mse_loss(ddp(batch.x, goes_left), batch.y);
    loss.backward();
    sgd.step();
    print_loss(step, loss);
  }
  print_end(ddp);
  return 0;
}

parallel::CommHook own_hook() {
  return {"own", [](parallel::GradBucket& bucket) -> parallel::HookResult {
            const at::Tensor buffer = bucket.buffer().div_(bucket.world_size());
            auto work = dist::all_reduce(buffer, dist::ReduceOp::SUM,
                                         {.group = bucket.group(), .async_op = true});
            return [work, buffer]() mutable {
              work.wait();
              return buffer;
            };
          }};
}

DdpOptions with(const std::function<void(DdpOptions&)>& change) {
  DdpOptions options;
  change(options);
  return options;
}

const auto kSmall = [](DdpOptions& o) { o.bucket_cap_mb = 0.002; };
const auto kViews = [](DdpOptions& o) { o.gradient_as_bucket_view = true; };
const auto kFindUnused = [](DdpOptions& o) { o.find_unused_parameters = true; };
const auto kFindUnusedViews = [](DdpOptions& o) {
  o.find_unused_parameters = true;
  o.gradient_as_bucket_view = true;
  o.bucket_cap_mb = 0.001;
};
const auto kStatic = [](DdpOptions& o) { o.static_graph = true; };
const auto kStaticViews = [](DdpOptions& o) {
  o.static_graph = true;
  o.gradient_as_bucket_view = true;
};

Setup hooked(parallel::CommHook hook) { return {with(kSmall), std::move(hook)}; }

parallel::CommHook power_sgd() {
  return parallel::power_sgd_hook(
      {.matrix_approximation_rank = 2, .start_power_sgd_iter = 10, .min_compression_rate = 1});
}

const std::map<std::string, std::function<int()>>& modes() {
  static const std::map<std::string, std::function<int()>> all{
      {"plain", [] { return train_plainly<Mlp>({}); }},
      {"arrow",
       [] {
         return train_plainly<Mlp>({},
                                   [](auto& ddp, const at::Tensor& x) { return ddp->forward(x); });
       }},
      {"buckets",
       [] {
         return train_plainly<Mlp>({with(kSmall), {}});
       }},
      {"views",
       [] {
         return train_plainly<Mlp>({with(kViews), {}});
       }},
      {"buffers", [] { return train_plainly<Normed>({}); }},
      {"find_unused_all_used",
       [] {
         return train_plainly<Mlp>({with(kFindUnused), {}});
       }},
      {"static",
       [] {
         return train_plainly<Mlp>({with(kStatic), {}});
       }},
      {"static_views",
       [] {
         return train_plainly<Mlp>({with(kStaticViews), {}});
       }},
      {"static_unused",
       [] {
         return train_branches({with(kStatic), {}}, false);
       }},
      {"no_sync", [] { return train_accumulating({}); }},
      {"no_sync_views",
       [] {
         return train_accumulating({with(kViews), {}});
       }},
      {"no_sync_unused",
       [] {
         return train_accumulating({with(kFindUnused), {}});
       }},
      {"unused",
       [] {
         return train_branches({with(kFindUnused), {}}, true);
       }},
      {"unused_views",
       [] {
         return train_branches({with(kFindUnusedViews), {}}, true);
       }},
      {"own_hook", [] { return train_plainly<Mlp>(hooked(own_hook())); }},
      {"allreduce_hook", [] { return train_plainly<Mlp>(hooked(parallel::allreduce_hook())); }},
      {"fp16_hook", [] { return train_plainly<Mlp>(hooked(parallel::fp16_compress_hook())); }},
      {"bf16_hook", [] { return train_plainly<Mlp>(hooked(parallel::bf16_compress_hook())); }},
      {"fp16_wrapper",
       [] {
         return train_plainly<Mlp>(
             hooked(parallel::fp16_compress_wrapper(parallel::allreduce_hook())));
       }},
      {"power_sgd",
       [] {
         return train_plainly<Mlp>({{}, power_sgd()});
       }},
  };
  return all;
}

}  // namespace

// The words are modes, run in sequence; before them may stand "on=BACKEND:DEVICE", default
// gloo:cpu.
SDK_CASE(ddp_train) {
  std::string backend = "gloo";
  auto first = args.begin();
  if (first != args.end() && first->starts_with("on=")) {
    const size_t colon = first->find(':');
    backend = first->substr(3, colon - 3);
    device = at::Device(first->substr(colon + 1));
    if (device.is_cuda() && !dist::is_nccl_available()) throw std::runtime_error("no GPU");
    ++first;
  }
  const auto group = dist::init_process_group({.backend = backend});
  for (; first != args.end(); ++first) {
    mode = *first;
    if (const int code = modes().at(mode)()) return code;
  }
  return 0;
}

}  // namespace cpprun::test
