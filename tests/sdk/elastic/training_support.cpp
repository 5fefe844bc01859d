#include "tests/sdk/elastic/training_support.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "cpprun/worker/environment.hpp"

namespace cpprun::test {
namespace {

// "hang:1" as kind and rank.
std::pair<std::string, int> kind_and_rank(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, -1};
  return {text.substr(0, colon), std::stoi(text.substr(colon + 1))};
}

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

void print_line(const std::string& text) {
  std::cout << "[rank " + std::to_string(worker::environment_or_default().rank) + "] " + text + "\n"
            << std::flush;
}

void print_step(int64_t step, int64_t round) {
  print_line("step " + std::to_string(step) + " of round " + std::to_string(round));
}

std::shared_ptr<torch::nn::SequentialImpl> elastic_net() {
  torch::manual_seed(0);
  return std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(20, 60), torch::nn::Tanh(),
                                                     torch::nn::Linear(60, 7));
}

at::Tensor batch(int64_t step, int rank) {
  const auto seed = static_cast<uint64_t>(1000 * step + rank);
  return at::randn({8, 20}, at::detail::createCPUGenerator(seed), at::TensorOptions());
}

// FNV-1a of all bytes.
std::string hash_of(const torch::nn::Module& module) {
  uint64_t hash = 14695981039346656037U;
  for (const at::Tensor& each : module.parameters()) {
    const at::Tensor flat = each.detach().cpu().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(flat.const_data_ptr());
    for (size_t i = 0; i < flat.nbytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211U;
  }
  return std::to_string(hash);
}

HookGuard::HookGuard(at::Tensor tensor, const std::function<void()>& hook)
    : tensor_(std::move(tensor)), number_(tensor_.register_hook([hook](at::Tensor) { hook(); })) {}

HookGuard::~HookGuard() { tensor_.remove_hook(number_); }

ElasticWords::ElasticWords(const Words& words)
    : first_rank_(worker::environment_or_default().rank),
      is_of_first_round_(worker::environment_or_default().restart_count == 0) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    values_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

std::string ElasticWords::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

int64_t ElasticWords::number(const std::string& name, int64_t other) const {
  const std::string value = text(name);
  return value.empty() ? other : std::stol(value);
}

ElasticOptions ElasticWords::options() const {
  const auto [kind, rank] = kind_and_rank(text("health"));
  ElasticOptions options{.min_world = static_cast<int>(number("min", 1)),
                         .health_check_timeout = std::chrono::seconds(2)};
  if (kind.empty()) return options;
  options.health_check = [kind = kind, is_bad = rank == first_rank_] {
    print_line("checks its health");
    if (is_bad && kind == "fail") throw std::runtime_error("the device does not answer");
    if (is_bad && kind == "hang") hang();
    return !is_bad;
  };
  return options;
}

dist::InitOptions ElasticWords::group() const {
  const std::string backend = text("backend");
  return {.backend = backend.empty() ? "gloo" : backend};
}

at::Device ElasticWords::device() const {
  if (text("device") != "cuda") return at::kCPU;
  if (!dist::is_nccl_available()) throw std::runtime_error("there is no GPU");
  return at::kCUDA;
}

void ElasticWords::sleep() const {
  std::this_thread::sleep_for(std::chrono::milliseconds(number("sleep", 0)));
}

bool ElasticWords::is_faulty(const std::string& kind) const {
  return is_of_first_round_ && kind_and_rank(text("fault")) == std::pair(kind, first_rank_);
}

void ElasticWords::inject() const {
  if (is_faulty("hang")) {
    print_line("hangs");
    hang();
  }
  if (is_faulty("throw")) throw std::runtime_error("the data has no labels");
}

void ElasticWords::die_if(const std::string& kind, int64_t step) const {
  if (step == 10 && is_faulty(kind)) ::raise(SIGKILL);
}

void ElasticWords::die_early(int64_t round, int rank) const {
  if (round == 2 && kind_and_rank(text("fault")) == std::pair(std::string("early"), rank))
    ::raise(SIGKILL);
}

std::unique_ptr<HookGuard> ElasticWords::kill_in_backward(const at::Tensor& parameter,
                                                          bool is_due) const {
  if (!is_due || !is_faulty("backward")) return nullptr;
  return std::make_unique<HookGuard>(parameter, [] { ::raise(SIGKILL); });
}

}  // namespace cpprun::test
