// clip FILE, scaler FILE and fused FILE: for each line of FILE, JSON of the values to clip, scale
// or step, prints the exact result; twins/gradients.py prints the same.
#include <torch/optim.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/optim/clip_grad.hpp"
#include "cpprun/optim/fused.hpp"
#include "cpprun/optim/grad_scaler.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using Json = nlohmann::json;

at::ScalarType dtype_of(const std::string& name) {
  return name == "float64" ? torch::kDouble : name == "bfloat16" ? torch::kBFloat16 : torch::kFloat;
}

at::ScalarType bits_of(const at::Tensor& tensor) {
  return tensor.element_size() == 8   ? torch::kLong
         : tensor.element_size() == 4 ? torch::kInt
                                      : torch::kShort;
}

// A hash of every bit of a tensor.
int64_t digest(const at::Tensor& tensor) {
  const at::Tensor bits = tensor.detach().contiguous().view(bits_of(tensor)).to(torch::kLong);
  const at::Tensor places = torch::arange(bits.numel(), torch::kLong);
  return ((bits.flatten() + 1) * (places * 2'654'435'761 + 1)).sum().item<int64_t>();
}

std::vector<at::Tensor> make_parameters(const Json& setting) {
  std::vector<at::Tensor> parameters;
  torch::manual_seed(setting.at("seed").get<uint64_t>());
  for (const Json& one : setting.at("parameters")) {
    const auto shape = one.at("shape").get<std::vector<int64_t>>();
    at::Tensor parameter = torch::zeros(shape, dtype_of(one.at("dtype")));
    const at::Tensor noise = torch::randn(shape) * one.at("size").get<double>();
    if (one.at("has_grad")) parameter.mutable_grad() = noise.to(parameter.scalar_type());
    parameters.push_back(parameter);
  }
  return parameters;
}

void clip(const Json& setting) {
  const auto parameters = make_parameters(setting);
  const double norm_type = std::stod(setting.at("norm_type").get<std::string>());
  const at::Tensor norm =
      cpprun::nn::utils::clip_grad_norm_(parameters, setting.at("max_norm"), norm_type);
  std::printf("%.17g %" PRId64, norm.item<double>(), digest(norm));
  cpprun::nn::utils::clip_grad_value_(parameters, setting.at("clip_value"));
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) std::printf(" %" PRId64, digest(parameter.grad()));
  }
  std::puts("");
}

void scale(const Json& setting) {
  torch::manual_seed(1);
  const at::Tensor weights = torch::randn({7, 3}).requires_grad_();
  torch::optim::SGD sgd({weights}, torch::optim::SGDOptions(0.1).momentum(0.9));
  cpprun::amp::GradScaler scaler({.init_scale = setting.at("init_scale"),
                                  .growth_factor = setting.at("growth_factor"),
                                  .backoff_factor = setting.at("backoff_factor"),
                                  .growth_interval = setting.at("growth_interval")});
  for (const std::string kind : setting.at("steps")) {
    sgd.zero_grad();
    at::Tensor input = torch::randn({5, 7});
    if (kind == "inf") input[0][0] = INFINITY;
    if (kind == "nan") input[0][0] = NAN;
    scaler
        .scale(torch::tanh(torch::mm(input, weights)).pow(2).sum() +
               (kind == "good" ? 0 : 1) * torch::mm(input, weights).sum())
        .backward();
    if (setting.at("clips")) {
      scaler.unscale_(sgd);
      cpprun::nn::utils::clip_grad_norm_({weights}, 0.5);
    }
    scaler.step(sgd);
    scaler.update();
    std::printf("%.17g %g %" PRId64 "\n", scaler.get_scale(),
                scaler.state_dict().at("_growth_tracker"), digest(weights));
  }
}

template <class Options>
Options adam_options(const Json& setting) {
  return Options(setting.at("lr"))
      .betas({setting.at("betas").at(0), setting.at("betas").at(1)})
      .eps(setting.at("eps"))
      .weight_decay(setting.at("weight_decay"))
      .amsgrad(setting.at("amsgrad"));
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Json& setting,
                                                        const std::vector<at::Tensor>& parameters) {
  using namespace torch::optim;
  using namespace cpprun::optim;
  const std::string name = setting.at("optimizer");
  const bool is_fused = setting.at("fused");
  if (name == "SGD") {
    const auto options = SGDOptions(setting.at("lr").get<double>())
                             .momentum(setting.at("momentum"))
                             .dampening(setting.at("dampening"))
                             .weight_decay(setting.at("weight_decay"))
                             .nesterov(setting.at("nesterov"));
    if (is_fused) return std::make_unique<FusedSGD>(parameters, options);
    return std::make_unique<SGD>(parameters, options);
  }
  if (name == "Adam") {
    const auto options = adam_options<AdamOptions>(setting);
    if (is_fused) return std::make_unique<FusedAdam>(parameters, options);
    return std::make_unique<Adam>(parameters, options);
  }
  const auto options = adam_options<AdamWOptions>(setting);
  if (is_fused) return std::make_unique<FusedAdamW>(parameters, options);
  return std::make_unique<AdamW>(parameters, options);
}

// Two parameters get their first gradients later than the others.
void fused(const Json& setting) {
  const auto parameters = make_parameters(setting);
  const auto optimizer = make_optimizer(setting, parameters);
  const bool is_late = setting.at("is_late");
  for (int step = 0; step < setting.at("steps"); ++step) {
    size_t at = 0;
    for (const at::Tensor& parameter : parameters) {
      const bool waits = is_late && at++ < 2 && step < 3;
      const at::Tensor gradient = torch::randn(parameter.sizes()).to(parameter.scalar_type());
      if (!waits) parameter.mutable_grad() = gradient;
    }
    optimizer->step();
  }
  for (const at::Tensor& parameter : parameters) {
    std::printf("%.17g %" PRId64 " ", parameter.to(torch::kDouble).abs().sum().item<double>(),
                digest(parameter));
  }
  std::puts("");
}

int each_line(const std::string& path, void (*run)(const Json&)) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) run(Json::parse(line));
  return 0;
}

}  // namespace

SDK_CASE(clip) { return each_line(args.at(0), clip); }
SDK_CASE(fused) { return each_line(args.at(0), fused); }
SDK_CASE(scaler) { return each_line(args.at(0), scale); }

// Only one rank has an infinity; all skip the step.
SDK_CASE(scaler_sync) {
  const auto group = cpprun::dist::init_process_group();
  const at::Tensor weight = torch::ones({1}).requires_grad_();
  torch::optim::SGD sgd({weight}, 1.0);
  cpprun::amp::GradScaler scaler({.init_scale = 8, .sync_found_inf = args.at(0) == "sync"});
  const bool is_last = cpprun::dist::get_rank() == cpprun::dist::get_world_size() - 1;
  for (const float factor : {1.0F, is_last ? INFINITY : 1.0F}) {
    sgd.zero_grad();
    scaler.scale(weight * factor).sum().backward();
    const bool is_stepped = scaler.step(sgd);
    scaler.update();
    std::printf("rank %d stepped %d scale %g\n", cpprun::dist::get_rank(), is_stepped,
                scaler.get_scale());
  }
  cpprun::dist::barrier();  // a rank that leaves early refuses late connections
  return 0;
}
