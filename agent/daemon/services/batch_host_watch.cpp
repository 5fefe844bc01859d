#include "agent/daemon/services/batch_host_watch.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/core/lost_batch_host.hpp"
#include "agent/process/spawn/helper_process.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/text.hpp"

namespace cpprun {

BatchHostWatch::BatchHostWatch(boost::asio::io_context& loop, const AgentConfig& config,
                               std::function<void(const std::string&)> warn)
    : config_(config), warn_(std::move(warn)), background_(loop), timer_(loop, [this] { ask(); }) {}

void BatchHostWatch::on_disconnected() {
  if (is_over_ || !agent::may_ask_for_requeue(config_.cluster)) return;
  pause_ = limits::kBatchHostAskFirst;
  until_ = boot_now() + limits::kBatchHostWatch;
  if (!is_asking_) timer_.set(boot_now() + pause_);
}

BatchHostWatch::Answer BatchHostWatch::run(const std::vector<std::string>& command) {
  Result<HelperProcess> program = HelperProcess::start(command);
  if (!program) return {false, program.error().text};
  const Instant until = boot_now() + limits::kSchedulerTimeout;
  std::string text;
  const bool is_whole = read_until(program->output(), until, limits::kSchedulerAnswerBytes, text);
  if (is_whole) program->await_end(until);
  const std::optional<int> status = program->end();
  return {is_whole && status == 0, std::string(text::strip(text))};
}

void BatchHostWatch::ask() {
  is_asking_ = true;
  background_.run_or(
      [job = config_.cluster.job_id] {
        return run({"scontrol", "show", "job", job});
      },
      [this](const Answer& answer) {
        is_asking_ = false;
        on_shown(answer);
      },
      [](const Status& failed) {
        return Answer{false, failed.error().text};
      });
}

// A controller that does not answer is asked again: it may be on the lost node.
void BatchHostWatch::on_shown(const Answer& answer) {
  using What = agent::RequeueAdvice::What;
  agent::RequeueAdvice advice;
  if (answer.is_done) {
    advice = agent::requeue_advice(config_.cluster, config_.rendezvous.min_nodes, answer.text);
  } else {
    log::info("scontrol show job has failed: " + answer.text);
  }
  if (advice.what != What::Wait) {
    is_over_ = true;
    if (!advice.why.empty()) warn_(advice.why);
    if (advice.what == What::Requeue) requeue();
    return;
  }
  pause_ = std::min(2 * pause_, limits::kBatchHostAskMax);
  if (boot_now() + pause_ < until_) timer_.set(boot_now() + pause_);
}

void BatchHostWatch::requeue() {
  background_.run_or(
      [job = config_.cluster.job_id] {
        return run({"scontrol", "requeue", job});
      },
      [this](const Answer& answer) { on_requeued(answer); },
      [](const Status& failed) {
        return Answer{false, failed.error().text};
      });
}

void BatchHostWatch::on_requeued(const Answer& answer) {
  const std::string& job = config_.cluster.job_id;
  if (answer.is_done) return log::status("job " + job + " is requeued");
  warn_("scontrol requeue " + job + " has failed, and the job is not requeued: " + answer.text);
}

}  // namespace cpprun
