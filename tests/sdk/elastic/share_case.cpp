// elastic_share WORD=VALUE...: a training by cpprun::elastic that takes its state from the rank
// that has completed most steps.
//
// backend=NAME and device=cuda (defaults: gloo, cpu), steps=N, sleep=MS (of each step),
// optimizer=sgd, fault=KIND:RANK, of that rank in the first round, at step 10: backward (SIGKILL
// inside of it). fault=donor: SIGKILL of the donor of the second round when it gives its state
// away; fault=names: ranks track different objects in the second round. Prints as elastic_train
// does.
#include <unistd.h>

#include "cpprun/elastic/elastic.hpp"
#include "cpprun/snapshot/job_history.hpp"
#include "cpprun/worker/main.hpp"
#include "tests/sdk/elastic/shared_training_support.hpp"
#include "tests/sdk/elastic/training_support.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;
using test::ElasticWords;
using test::print_line;

void call_of_round(ElasticRound& round, const ElasticWords& words, test::SharedTraining& training) {
  print_line("call of process " + std::to_string(::getpid()) + " in round " +
             std::to_string(round.number()));
  const auto group = round.init_process_group(words.group());
  int64_t step = round.share_state(training.state());
  print_line("from " + std::to_string(step));
  auto ddp = round.data_parallel(training.net());
  while (step < words.number("steps", 30)) {
    // An interrupted step would leave a trace in the sampler.
    training.step(ddp, step, test::batch(step, round.rank()), [] {});
    round.commit(++step);
    if (round.rank() == 0) test::print_step(step, round.number());
    words.sleep();
  }
  print_line("rollbacks " + std::to_string(snapshot::own_job_history().rollbacks()));
  print_line("parameters " + training.hash());
}

}  // namespace

SDK_CASE(elastic_share) {
  const ElasticWords words(args);
  return cpprun::main(0, nullptr, [&](Args) {
    test::SharedTraining training(words);
    elastic(words.options(), [&](ElasticRound& round) { call_of_round(round, words, training); });
  });
}
