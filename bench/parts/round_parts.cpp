// A job in the coordinator's core: N nodes register, a round forms, one worker fails, all stop, the
// next round forms. One iteration is one failure with its recovery.
#include <memory>
#include <string>
#include <vector>

#include "bench/parts/parts.hpp"
#include "common/check.hpp"
#include "common/version.hpp"
#include "rendezvous/coordinator/job.hpp"

namespace cpprun::bench {
namespace {

class BenchJob {
 public:
  explicit BenchJob(int nodes) {
    control::JobSpec job_spec;
    job_spec.min_nodes = nodes;
    job_spec.max_nodes = nodes;
    job_spec.max_restarts = 1'000'000'000;
    JobOptions options;
    options.run_id = "job";
    options.coordinator = "host";
    options.term = options.first_term = Term(1);
    job_ = std::make_unique<Job>(std::move(options), job_spec, effects_);
    job_->on_store_port(now_, 30000, effects_);
    for (int i = 0; i < nodes; ++i) add(i, job_spec);
    CPPRUN_CHECK(job_->phase() == Job::Phase::Running);
  }

  void fail_and_form() {
    const RoundNumber round = job_->round();
    WorkerExit end;
    end.exit_code = 1;
    job_->on_message(now_, SessionId(1), control::Failed{round, end, false}, effects_);
    for (const SessionId session : sessions_) {
      job_->on_message(now_, session, control::Stopped{round, 40000}, effects_);
    }
    job_->on_store_port(now_, 30000, effects_);
    effects_.clear();
    CPPRUN_CHECK(job_->round() != round);
  }

 private:
  void add(int number, const control::JobSpec& job_spec) {
    const SessionId session(static_cast<uint64_t>(number) + 1);
    control::Hello hello;
    hello.run_id = "job";
    hello.version = version();
    hello.node = NodeId{"node" + std::to_string(number), Incarnation(session.value)};
    hello.connection = 1;
    control::Register facts;
    facts.job_spec = job_spec;
    facts.nproc = 8;
    facts.addresses = {"10.0.0.1"};
    facts.reserved_port = 40000;
    job_->on_register(now_, session, hello, facts, {"10.0.0.9", "10.0.0.1"}, effects_);
    sessions_.push_back(session);
    effects_.clear();
  }

  Instant now_ = Instant::from_nanoseconds(1'000'000'000);
  Effects effects_;
  std::unique_ptr<Job> job_;
  std::vector<SessionId> sessions_;
};

Loop recoveries(int nodes) {
  return [job = std::make_shared<BenchJob>(nodes)](size_t n) {
    while (n-- > 0) job->fail_and_form();
  };
}

}  // namespace

BENCH_PART(round_10_nodes) { return recoveries(10); }
BENCH_PART(round_100_nodes) { return recoveries(100); }
BENCH_PART(round_1000_nodes) { return recoveries(1000); }
BENCH_PART(round_10000_nodes) { return recoveries(10'000); }
BENCH_PART(round_100000_nodes) { return recoveries(100'000); }

}  // namespace cpprun::bench
