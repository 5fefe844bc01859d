// Rank 0 saves a checkpoint, all ranks load it: where barriers are needed, and why.
//
//   cpprun --nproc_per_node=3 ./ex_ckpt_barrier --slow-save 2
//   cpprun --nproc_per_node=3 ./ex_ckpt_barrier --slow-save 2 --no-barrier    # fails: too early
//   cpprun --nproc_per_node=3 ./ex_ckpt_barrier --rounds 50 --same-name --jitter
//   cpprun --nproc_per_node=3 ./ex_ckpt_barrier --eval --n 10 --print-count
//
// 1. Training needs no barrier: backward() waits for all ranks.
// 2. Collectives need no barrier around them; object collectives don't either.
// 3. Data that bypasses the group, such as a file, needs two: one before the file is read, and one
//    before any rank may overwrite or delete it.
#include <chrono>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <torch/torch.h>

#include "cpprun/data/unpadded_distributed_sampler.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/snapshot/state_dict.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;

namespace {

struct Settings {
  int64_t rounds = 1, size = 10;
  double slow_save = 0;
  bool has_no_barrier = false, has_one_name = false, has_jitter = false;
  bool evaluates = false, prints_count = false;
};

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// The checkpoint's content: the round's number, and a thousand copies to detect a partial file.
struct Generation : torch::nn::Module {
  explicit Generation(int64_t round)
      : number(register_buffer("number", torch::full({1}, round, torch::kLong))),
        weights(register_buffer("weights", torch::full({1000}, static_cast<double>(round)))) {}
  at::Tensor number, weights;
};

class Checkpoints {
 public:
  explicit Checkpoints(const Settings& settings)
      : settings_(settings), random_(static_cast<unsigned>(dist::get_rank())) {}

  // Rank 0 saves, all ranks load. On return every rank has loaded generation `round`.
  void save_and_load(int64_t round) {
    jitter();
    if (dist::is_main_process()) save(round);
    wait_for_all();  // no rank reads before the file is complete
    jitter();
    load(round);
    wait_for_all();  // no rank overwrites it before all have read it
  }

  static std::string path(const Settings& settings, int64_t round) {
    return settings.has_one_name ? "checkpoint.pt" : "checkpoint_" + std::to_string(round) + ".pt";
  }

 private:
  void save(int64_t round) {
    pause(settings_.slow_save);
    cpprun::save_state_dict(Generation(round), path(settings_, round));
  }

  void load(int64_t round) {
    Generation found(0);
    cpprun::load_state_dict(found, path(settings_, round));
    const auto number = found.number.item<int64_t>();
    examples::print_line("rank ", dist::get_rank(), " loaded generation ", number);
    const bool is_whole = found.weights.eq(number).all().item<bool>();
    if (number != round || !is_whole)
      throw std::runtime_error("wanted generation " + std::to_string(round));
  }

  void wait_for_all() {
    if (!settings_.has_no_barrier) dist::barrier();
  }

  void jitter() {
    if (settings_.has_jitter) pause(std::uniform_real_distribution(0.0, 0.005)(random_));
  }

  const Settings& settings_;
  std::mt19937 random_;
};

void run_rounds(const Settings& settings) {
  if (dist::is_main_process()) {  // remove the files of earlier runs
    for (int64_t round = 1; round <= settings.rounds; ++round)
      std::filesystem::remove(Checkpoints::path(settings, round));
  }
  dist::barrier();
  Checkpoints checkpoints(settings);
  for (int64_t round = 1; round <= settings.rounds; ++round) checkpoints.save_and_load(round);
}

// Each sample is on exactly one rank. DistributedSampler would pad the ranks' parts to equal
// lengths and so count some samples twice.
void evaluate(const Settings& settings) {
  cpprun::data::UnpaddedDistributedSampler sampler(static_cast<size_t>(settings.size));
  int64_t mine = 0;
  while (auto batch = sampler.next(4)) mine += static_cast<int64_t>(batch->size());
  auto count = torch::tensor({mine});
  dist::all_reduce(count);  // after the loop: the ranks may have different numbers of batches
  if (settings.prints_count && dist::is_main_process()) examples::print_line(count.item<int64_t>());
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    Settings s;
    examples::Options("Rank 0 saves a checkpoint, all ranks load it.")
        .add("--rounds", s.rounds, "how many times")
        .add("--slow-save", s.slow_save, "seconds added to each save")
        .add("--no-barrier", s.has_no_barrier, "leave the barriers out")
        .add("--same-name", s.has_one_name, "one file for all rounds, overwritten each time")
        .add("--jitter", s.has_jitter, "ranks pause for random milliseconds")
        .add("--eval", s.evaluates, "evaluate instead, and count the samples")
        .add("--n", s.size, "samples in the evaluation")
        .add("--print-count", s.prints_count, "print how many samples all ranks evaluated")
        .parse(args);
    auto group = dist::init_process_group_or_single({.backend = "gloo"});
    s.evaluates ? evaluate(s) : run_rounds(s);
  });
}
