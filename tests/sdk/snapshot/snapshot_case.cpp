// snapshot_train WORD=VALUE...: a training on several ranks that resumes and saves; prints its
// starting point and its result.
//     every=, disk_every=        steps, with async=1 of maybe_save(), else of save()
//     every_ms=, disk_every_ms=  milliseconds, with async=1
//     waits=1                    waits for each save
//     sleep_ms=                  of each step
//     prints=1                   prints what save() or wait() has returned
#include <malloc.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/optim/zero_redundancy_optimizer.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/arena.hpp"
#include "cpprun/worker/faults.hpp"
#include "snapshot_files/folders/arena_slots.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "tests/sdk/snapshot/training_support.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;

class Settings {
 public:
  explicit Settings(const test::Words& words) {
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  std::string text(const std::string& name, const std::string& other) const {
    const auto found = values_.find(name);
    return found == values_.end() ? other : found->second;
  }
  int64_t number(const std::string& name, int64_t other) const {
    return std::stol(text(name, std::to_string(other)));
  }

 private:
  std::map<std::string, std::string> values_;
};

void print_line(const std::string& text) {
  std::cout << "rank " + std::to_string(dist::get_rank()) + " " + text + "\n" << std::flush;
}

SnapshotOptions place(const Settings& settings) {
  SnapshotOptions options{.keep = static_cast<int>(settings.number("keep", 3)),
                          .in_memory = settings.number("memory", 1) != 0};
  if (settings.text("file", "").empty()) options.dir = settings.text("dir", "snapshots");
  options.file = settings.text("file", "");
  return options;
}

// zero=1: each rank keeps the state of a part of the parameters.
std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Settings& settings,
                                                      const std::vector<at::Tensor>& parameters) {
  const std::string kind = settings.text("optimizer", "sgd");
  if (settings.number("zero", 0) == 0) return test::make_optimizer(kind, parameters);
  using namespace torch::optim;
  if (kind == "adamw") {
    return std::make_unique<optim::ZeroRedundancyOptimizer<AdamW>>(parameters, AdamWOptions(0.01));
  }
  if (kind == "adagrad") {
    return std::make_unique<optim::ZeroRedundancyOptimizer<Adagrad>>(parameters,
                                                                     AdagradOptions(0.01));
  }
  return std::make_unique<optim::ZeroRedundancyOptimizer<SGD>>(
      parameters, SGDOptions(0.01).momentum(0.9).nesterov(true));
}

class Training {
 public:
  explicit Training(const Settings& settings)
      : settings_(settings),
        model_(test::make_net(0.3, settings.number("more", 0) != 0)),
        optimizer_(optimizer_of(settings, model_.parameters())),
        schedule_(*optimizer_, {.step_size = 5, .gamma = 0.9}),
        sampler_(test::kSamples, {.seed = 3}),
        snapshot_(place(settings)) {
    if (settings.text("hook", "") == "power_sgd") {
      model_.register_comm_hook(nn::parallel::power_sgd_hook({.start_power_sgd_iter = 2}));
    }
    torch::manual_seed(100 + static_cast<uint64_t>(dist::get_rank()));
    snapshot_.track("model", model_, {.strict = settings.number("strict", 1) != 0});
    snapshot_.track(*optimizer_, model_).track(schedule_).track(sampler_).track_rng();
    snapshot_.track("epoch", epoch_);
    snapshot_.track("seen", seen_, {.is_per_rank = true});
  }

  void run() {
    const Resumed from = snapshot_.resume();
    step_ = from.step;
    print_line(std::string("from ") + name(from.source) + " step " + std::to_string(from.step));
    worker::report_ready();
    const int64_t epochs = settings_.number("epochs", 4);
    for (; epoch_ < epochs; ++epoch_) run_epoch();
    wait();
    print_line("hash " + test::fingerprint(model_.module(), /*has_buffers=*/false));
    print_line("buffers " + test::fingerprint(model_.module()));
    print_line("draws " + std::to_string(torch::rand({1}, torch::kDouble).item<double>()));
    print_line("seen " + std::to_string(seen_) + " rate " +
               std::to_string(optimizer_->param_groups()[0].options().get_lr()));
  }

 private:
  void run_epoch() {
    sampler_.set_epoch(epoch_);
    const auto batch_size = static_cast<size_t>(24 / dist::get_world_size());
    while (auto rows = sampler_.next(batch_size)) {
      worker::fault_point(epoch_, step_);
      const auto batch = torch::tensor(std::vector<int64_t>(rows->begin(), rows->end()));
      model_.zero_grad();
      torch::mse_loss(model_(data_.inputs.index_select(0, batch)),
                      data_.targets.index_select(0, batch))
          .backward();
      optimizer_->step();
      schedule_.step();
      ++step_;
      seen_ += static_cast<int64_t>(rows->size());
      mend();
      std::this_thread::sleep_for(std::chrono::milliseconds(settings_.number("sleep_ms", 0)));
      save();
    }
  }

  void save() {
    const bool is_async = settings_.number("async", 0) != 0;
    if (is_async ? !maybe_save() : step_ % settings_.number("every", 2) != 0) return;
    bool is_saved = true;
    if (!is_async) is_saved = snapshot_.save(step_);
    if (is_async && settings_.number("waits", 0) != 0) is_saved = snapshot_.wait();
    if (settings_.number("prints", 0) != 0) print_line("saved " + std::to_string(is_saved));
  }

  bool maybe_save() {
    const auto milliseconds = [this](const char* name) {
      return std::chrono::milliseconds(settings_.number(name, 0));
    };
    return snapshot_.maybe_save(step_, {.every_steps = settings_.number("every", 2),
                                        .every = milliseconds("every_ms"),
                                        .disk_every_steps = settings_.number("disk_every", 0),
                                        .disk_every = milliseconds("disk_every_ms")});
  }

  // After the training: the result of wait(), and what is on disk by then.
  void wait() {
    std::string result = "waited " + std::to_string(snapshot_.wait());
    if (settings_.number("prints", 0) == 0) return;
    const auto found = snapshot_files::scan(snapshot_files::real_files(), place(settings_).dir);
    for (const auto& each : found->complete) result += ' ' + std::to_string(each.step);
    print_line(result);
  }

  // Repairs the disk: removes the obstacles.
  void mend() {
    if (step_ != settings_.number("mend", -1) || dist::get_rank() != 0) return;
    std::filesystem::remove(settings_.text("in_the_way", "blocked"));
  }

  const Settings& settings_;
  const test::Data data_;
  nn::parallel::DistributedDataParallel<test::Net> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  optim::lr_scheduler::StepLR schedule_;
  data::DistributedSampler sampler_;
  int64_t epoch_ = 0, step_ = 0, seen_ = 0;
  Snapshot snapshot_;
};

}  // namespace

// Measures the memory that resume() leaves behind on ranks that receive the file from rank 0.
SDK_CASE(snapshot_sent) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  const std::string file = dist::get_rank() == 0 ? "snapshot.pt" : "nowhere/snapshot.pt";
  at::Tensor value = at::ones({8 << 20});  // 32 MiB
  {
    Snapshot snapshot({.file = file, .in_memory = false, .hints = false});
    snapshot.track("value", value);
    snapshot.save(1);
    snapshot.save(2);
  }
  value.zero_();
  Snapshot snapshot({.file = file, .in_memory = false, .hints = false});
  snapshot.track("value", value);
  const auto in_use = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  const auto before = in_use();
  const Resumed from = snapshot.resume();
  const bool is_whole = value.min().item<float>() == 1;
  const bool is_lean = in_use() < before + (8 << 20);
  print_line("step " + std::to_string(from.step) + (is_whole ? " whole" : "") +
             (is_lean ? " lean" : ""));
  return 0;
}

// Two Snapshots in their own folders, as a GAN has, saved at the same steps at the same time. The
// first process dies afterwards.
SDK_CASE(snapshot_pair) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  at::Tensor one = at::zeros({100'000}), two = at::zeros({100'000});
  Snapshot first({.dir = "first", .hints = false});
  Snapshot second({.dir = "second", .hints = false});
  first.track("value", one);
  second.track("value", two);
  const auto print = [](const char* which, const Resumed& from, const at::Tensor& value) {
    print_line(std::string(which) + " " + name(from.source) + " " + std::to_string(from.step) +
               " " + std::to_string(value.min().item<int64_t>()) + " " +
               std::to_string(value.max().item<int64_t>()));
  };
  const Resumed from = first.resume();
  print("first", from, one);
  print("second", second.resume(), two);
  if (from.step > 0) return 0;
  one.fill_(1);
  two.fill_(2);
  first.save_async(5);
  second.save_async(5);
  first.wait();
  second.wait();
  dist::barrier();
  ::raise(SIGKILL);
  return 0;
}

// Saves a model whose second layer differs on each rank; apart=1: each in its own folder.
SDK_CASE(snapshot_differs) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  torch::nn::Sequential net(torch::nn::Linear(300, 300), torch::nn::Linear(300, 300));
  const torch::NoGradGuard no_grad;
  for (at::Tensor& each : net->parameters()) each.fill_(1);
  net->parameters()[2].add_(dist::get_rank() / 2);
  const bool is_apart = !args.empty() && args[0] == "apart=1";
  const std::string folder = is_apart ? "of-" + std::to_string(dist::get_rank()) : "together";
  Snapshot snapshot({.dir = folder});
  snapshot.track("model", *net);
  snapshot.save(1);
  snapshot.save(2);
  return 0;
}

// Ranks that are equal at first drift apart in one parameter after the first save.
SDK_CASE(snapshot_drifts) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  torch::nn::Sequential net(torch::nn::Linear(300, 300), torch::nn::Linear(300, 300));
  const torch::NoGradGuard no_grad;
  for (at::Tensor& each : net->parameters()) each.fill_(1);
  Snapshot snapshot({.dir = "drifts"});
  snapshot.track("model", *net);
  for (int64_t step = 1; step <= 9; ++step) {
    snapshot.save(step);
    if (step == 1) net->parameters()[2].add_(dist::get_rank());
  }
  return 0;
}

// Saves twice and damages the newer copy in rank 1's memory; all processes die.
SDK_CASE(snapshot_damaged_memory) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  at::Tensor value = at::zeros({100'000});
  Snapshot snapshot({.dir = "damaged", .hints = false});
  snapshot.track("value", value);
  const Resumed from = snapshot.resume();
  print_line(std::string("from ") + name(from.source) + " step " + std::to_string(from.step) +
             " value " + std::to_string(value.min().item<int64_t>()));
  if (from) return 0;
  for (int64_t step = 1; step <= 2; ++step) {
    value.fill_(static_cast<double>(step));
    snapshot.save(step);
  }
  if (dist::get_rank() == 1) {
    auto arena = worker::Arena::own(0);
    for (const auto& slot : snapshot_files::slots_of(arena.value().bytes())) {
      const auto at = static_cast<size_t>(slot.content.data() - arena.value().bytes().data());
      if (slot.label.step == 2)
        arena.value().writable()[at + slot.content.size() / 2] ^= std::byte{1};
    }
  }
  dist::barrier();
  if (dist::get_rank() == 0) std::filesystem::remove_all("damaged");  // only memory is left
  dist::barrier();
  ::raise(SIGKILL);
  return 0;
}

// While step 2 is written to a disk that the file SLOW makes slow, the state grows twice: first
// there is no room beside the slot of step 2, then the arena is enlarged.
SDK_CASE(snapshot_grows) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  at::Tensor value = at::ones({2 << 20});  // an arena grows in steps of 2 MiB
  Snapshot snapshot({.dir = args.at(0), .hints = false});
  snapshot.track("value", value);
  const auto save_in_memory = [&](int64_t step, int64_t elements) {
    value = at::full({elements}, static_cast<double>(step));
    while (!snapshot.save_async(step)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  snapshot.save(1);
  std::ofstream(args.at(1)) << "create";
  value.fill_(2);
  snapshot.save_async(2);
  save_in_memory(3, 3 << 20);
  save_in_memory(4, 8 << 20);
  print_line("waited " + std::to_string(snapshot.wait()));
  std::filesystem::remove(args.at(1));
  const Resumed from = snapshot.resume();
  print_line(std::string("from ") + name(from.source) + " step " + std::to_string(from.step) +
             " value " + std::to_string(value.min().item<int64_t>()) + " of " +
             std::to_string(value.numel()));
  return 0;
}

SDK_CASE(snapshot_train) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  const Settings settings(args);
  Training(settings).run();
  return 0;
}
