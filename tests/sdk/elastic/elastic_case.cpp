// elastic_train WORD=VALUE...: a training by cpprun::elastic on several ranks, whose parameters
// depend on every step.
//
// backend=NAME and device=cuda (defaults: gloo, cpu), steps=N, sleep=MS (of each step),
// fault=KIND:RANK, of that rank in the first round, at step 10: hang (never returns), swallow (goes
// on after each exception), throw, backward (SIGKILL inside of it), second (throws in its second
// call). fault=early:RANK: SIGKILL to that rank of round 2, before its group is made.
// health=KIND:RANK: its health check fails, is false or hangs. Prints "[rank R] call of process PID
// in round N", "[rank R] from STEP", the steps of rank 0, and "[rank R] parameters HASH".
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <thread>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/elastic/elastic.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/worker/main.hpp"
#include "tests/sdk/elastic/training_support.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;
using test::ElasticWords;
using test::print_line;

class Training {
 public:
  explicit Training(const ElasticWords& words) : words_(words) { net_->to(device_); }

  void operator()(ElasticRound& round) {
    print_line("call of process " + std::to_string(::getpid()) + " in round " +
               std::to_string(round.number()));
    if (!round.is_first() && words_.is_faulty("second"))
      throw std::runtime_error("the second call fails");
    words_.die_early(round.number(), round.rank());
    const auto group = round.init_process_group(words_.group());
    nn::parallel::DistributedDataParallel ddp(net_);
    Snapshot snapshot({.dir = "snapshots"});
    snapshot.track(ddp).track(optimizer_, ddp);
    int64_t step = snapshot.resume().step;
    print_line("from " + std::to_string(step));
    while (step < words_.number("steps", 30)) {
      guard(round, [&] { train(round, ddp, step); });
      round.commit(++step);
      snapshot.maybe_save(step, {.every_steps = 5});
      if (round.rank() == 0) test::print_step(step, round.number());
      words_.sleep();
    }
    snapshot.wait();
    print_line("parameters " + test::hash_of(*net_));
  }

 private:
  void train(ElasticRound& round,
             nn::parallel::DistributedDataParallel<torch::nn::SequentialImpl>& ddp, int64_t step) {
    if (step == 10) words_.inject();
    optimizer_.zero_grad();
    const auto hook = words_.kill_in_backward(net_->parameters().front(), step == 10);
    ddp(test::batch(step, round.rank()).to(device_)).pow(2).mean().backward();
    optimizer_.step();
  }

  // With fault=swallow the rank keeps every exception to itself.
  void guard(ElasticRound& round, const std::function<void()>& body) {
    try {
      body();
    } catch (const std::exception&) {
      if (!words_.is_faulty("swallow") || !round.is_first()) throw;
      print_line("swallows");
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }

  const ElasticWords& words_;
  const at::Device device_ = words_.device();
  std::shared_ptr<torch::nn::SequentialImpl> net_ = test::elastic_net();
  torch::optim::AdamW optimizer_{net_->parameters(), torch::optim::AdamWOptions(1e-2)};
};

}  // namespace

SDK_CASE(elastic_train) {
  const ElasticWords words(args);
  return cpprun::main(0, nullptr, [&](Args) {
    Training training(words);
    elastic(words.options(), training);
  });
}

// init_process_group twice in each round: survivors and new workers have made groups before in
// different numbers.
SDK_CASE(elastic_groups) {
  const ElasticWords words(args);
  return cpprun::main(0, nullptr, [&](Args) {
    const int64_t rounds = elastic({}, [&](ElasticRound& round) {
      print_line("call of process " + std::to_string(::getpid()) + " in round " +
                 std::to_string(round.number()));
      for (int64_t step = 0; step < words.number("steps", 30); ++step) {
        const auto group = round.init_process_group(words.group());
        const auto part = dist::new_group({0, 1});
        auto sum = torch::ones({1}, words.device());
        dist::all_reduce(sum);
        if (part.rank() >= 0) dist::all_reduce(sum, dist::ReduceOp::MAX, {.group = part});
        round.commit(step + 1);
        if (round.rank() == 0) test::print_step(step + 1, round.number());
        words.sleep();
      }
      return round.number();
    });
    print_line("ended in round " + std::to_string(rounds));
  });
}
