// One rank of the comparison with Python: trains a net for some steps and prints the times.
//
//   ddp_bench MODEL WARMUP STEPS [fused]  # mlp, conv, tiny; fused: the SGD step is a single call
//   ddp_bench start                       # up to the first all-reduce
//   ddp_bench loaded                      # up to main(): the time of loading LibTorch
//
// Rank 0 prints a line of JSON; with `start` every rank does. BENCH_EXEC_AT is the time of exec.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <nlohmann/json.hpp>

#include "bench/ddp/models.hpp"
#include "cpprun/torch.hpp"

namespace cpprun::bench {
namespace {

constexpr int kBatches = 8;
constexpr int kBatchSize = 32;

struct Usage {
  double wall_s, cpu_s, training_cpu_s;  // CPU time of the process, and of the training thread
  int64_t faults;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_seconds(const rusage& usage) {
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Usage usage() {
  rusage process{}, thread{};
  getrusage(RUSAGE_SELF, &process);
  getrusage(RUSAGE_THREAD, &thread);
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(wall).count(), cpu_seconds(process), cpu_seconds(thread),
          process.ru_minflt};
}

int64_t peak_kib() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);
  return now.ru_maxrss;
}

struct Batch {
  torch::Tensor input, label;
};

std::vector<Batch> make_batches(const std::vector<int64_t>& sample) {
  torch::manual_seed(1000 + static_cast<uint64_t>(dist::get_rank()));
  std::vector<int64_t> shape{kBatchSize};
  shape.insert(shape.end(), sample.begin(), sample.end());
  std::vector<Batch> batches;
  for (int i = 0; i < kBatches; ++i) {
    auto input = torch::randn(shape);
    batches.push_back({input, torch::randint(10, {kBatchSize})});
  }
  return batches;
}

std::unique_ptr<torch::optim::SGD> make_sgd(const std::vector<torch::Tensor>& parameters,
                                            bool is_fused) {
  const auto options = torch::optim::SGDOptions(0.01).momentum(0.9);
  if (is_fused) return std::make_unique<optim::FusedSGD>(parameters, options);
  return std::make_unique<torch::optim::SGD>(parameters, options);
}

void train(const std::string& name, int warmup, int steps, bool is_fused) {
  auto guard = dist::init_process_group({.backend = "gloo"});
  torch::manual_seed(1);
  const auto model = make_model(name);
  const auto batches = make_batches(model.sample);
  nn::parallel::DistributedDataParallel ddp(model.net);
  const auto optimizer = make_sgd(ddp.parameters(), is_fused);
  std::vector<torch::Tensor> losses;
  Usage before = usage();
  for (int step = 0; step < warmup + steps; ++step) {
    if (step == warmup) before = usage();
    const auto& [input, label] = batches[static_cast<size_t>(step % kBatches)];
    optimizer->zero_grad();
    auto loss = torch::nn::functional::cross_entropy(ddp(input), label);
    loss.backward();
    optimizer->step();
    losses.push_back(loss.detach());
  }
  const Usage after = usage();
  if (!dist::is_main_process()) return;
  nlohmann::json out{
      {"cpu_ms", (after.cpu_s - before.cpu_s) * 1000 / steps},
      {"training_cpu_ms", (after.training_cpu_s - before.training_cpu_s) * 1000 / steps},
      {"wall_ms", (after.wall_s - before.wall_s) * 1000 / steps},
      {"faults", static_cast<double>(after.faults - before.faults) / steps},
      {"rss_mib", static_cast<double>(peak_kib()) / 1024}};
  for (const auto& loss : losses) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", loss.item<double>());
    out["losses"].push_back(text);
  }
  std::printf("%s\n", out.dump().c_str());
}

void print_time_since_exec() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const char* exec_at = std::getenv("BENCH_EXEC_AT");
  const double since = std::chrono::duration<double>(now).count() - std::atof(exec_at);
  std::printf("%s\n", nlohmann::json{{"start_s", since}}.dump().c_str());
}

void start() {
  auto guard = dist::init_process_group({.backend = "gloo"});
  auto one = torch::ones({1});
  dist::all_reduce(one);
  print_time_since_exec();
}

int run(Args args) {
  const std::string name = args.argc > 1 ? args.argv[1] : "";
  if (name == "start") {
    start();
  } else if (name == "loaded") {
    print_time_since_exec();
  } else if (args.argc == 4 || (args.argc == 5 && std::string(args.argv[4]) == "fused")) {
    train(name, std::atoi(args.argv[2]), std::atoi(args.argv[3]), args.argc == 5);
  } else {
    std::fprintf(stderr, "usage: ddp_bench MODEL WARMUP STEPS [fused] | ddp_bench start|loaded\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace cpprun::bench

int main(int argc, char** argv) { return cpprun::main(argc, argv, cpprun::bench::run); }
