// AgentDaemon: what operators' tools on this machine ask, and may do to the workers here; and what
// the dashboard is told.
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "agent/daemon/daemon_impl.hpp"
#include "agent/daemon/stream_plans.hpp"
#include "agent/process/proc_files.hpp"
#include "common/endpoint.hpp"
#include "common/log/log.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {

namespace asio = boost::asio;

namespace {

const char* name_of(agent::Agent::State state) {
  using State = agent::Agent::State;
  switch (state) {
    case State::Joining:
      return "joining";
    case State::Starting:
      return "starting";
    case State::Running:
      return "running";
    case State::Stopping:
      return "stopping";
    case State::Stopped:
      return "stopped";
    case State::Done:
      return "done";
    case State::Leaving:
      return "leaving";
    case State::Draining:
      return "draining";
    case State::Saved:
      return "saved";
    case State::Ended:
      return "ended";
  }
  return "unknown";
}

operators::WorkerView view_of(const LiveWorker& worker) {
  operators::WorkerView view;
  view.rank = worker.rank.value;
  view.local_rank = worker.local_rank.value;
  view.pid = worker.pid;
  view.memory_bytes = resident_bytes(worker.pid);
  if (const auto& beat = worker.heartbeat) {
    view.progress = operators::Progress{beat->step, beat->collectives, beat->phase, beat->age,
                                        beat->step_takes};
  }
  return view;
}

}  // namespace

std::string AgentDaemon::Impl::operator_token() {
  const char* token = std::getenv("CPPRUN_OPERATOR_TOKEN");
  return token == nullptr ? "" : token;
}

void AgentDaemon::Impl::open_operators() {
  using operators::Question;
  using Answer = OperatorSocket::Answer;
  operators_.on("status", [this](const Question&, const Answer& answer) {
    answer(operators::encode(node_view()));
  });
  operators_.on("signal", [this](const Question& question, const Answer& answer) {
    answer(on_signal_question(question));
  });
  operators_.on("leave", [this](const Question& question, const Answer& answer) {
    answer(on_leave_question(question));
  });
  operators_.on("stacks", [this](const Question& question, const Answer& answer) {
    stacks_.ask(question, answer);
  });
  operators_.on("order", [this](const Question& question, const Answer& answer) {
    orders_.ask(question, answer);
  });
  if (Status ok = operators_.open(); !ok) log::info(ok.error().text);
}

operators::NodeView AgentDaemon::Impl::node_view() const {
  operators::NodeView view;
  view.run_id = config_.rendezvous.run_id;
  view.node = host_name_;
  view.title = config_.workers.title;
  view.pid = ::getpid();
  view.state = name_of(core_->state());
  view.is_host = is_own_;
  if (is_connected()) view.coordinator = to_string(led_from_);
  const control::World& world = core_->world();
  view.round = world.round.value;
  view.group_rank = world.group_rank;
  view.group_size = world.group_size;
  view.world_size = world.world_size;
  view.restarts_used = world.restart_count;
  view.max_restarts = config_.max_restarts;
  view.up = boot_now() - begun_at_;
  view.run_folder = folder_.run_folder();
  if (!core_->snapshots().empty()) view.snapshot_step = core_->snapshots().front().step;
  for (const LiveWorker& worker : host_->live()) {
    operators::WorkerView one = view_of(worker);
    const auto rank = static_cast<int>(worker.local_rank.value);
    StreamPlans streams = plan_streams(config_.logs, folder_, rank, "");
    one.stdout_file = std::move(streams.out.file);
    one.stderr_file = std::move(streams.err.file);
    view.workers.push_back(std::move(one));
  }
  return view;
}

void AgentDaemon::Impl::open_dashboard() {
  ProgressRoom::Doors progress;
  progress.live = [this] { return host_->live(); };
  progress.round = [this] { return core_->world().round; };
  progress.tell = [this](const control::Progress& told) { connection_->send(told); };
  progress_ = std::make_unique<ProgressRoom>(loop_, std::move(progress));
  TailRoom::Doors tails;
  tails.files = [this](int local_rank) {
    StreamPlans streams = plan_streams(config_.logs, folder_, local_rank, "");
    return TailRoom::Files{std::move(streams.out.file), std::move(streams.err.file)};
  };
  tails.round = [this] { return core_->world().round; };
  tails.tell = [this](const control::Lines& lines) { connection_->send(lines); };
  tails.workers = config_.workers.nproc;
  tails_ = std::make_unique<TailRoom>(loop_, std::move(tails));
}

// To the group of one worker, or of all that are here.
std::string AgentDaemon::Impl::on_signal_question(const operators::Question& question) {
  const std::optional<int64_t> number = question.number("signal");
  if (!number || *number < 1 || *number > kLastSignal) {
    return operators::refusal("'" + question.word("signal") + "' is no signal's number (1 to 64)");
  }
  const auto signal = static_cast<int>(*number);
  size_t reached = 0;
  for (const LiveWorker& worker : host_->live()) {
    const bool is_meant = question.word("rank").empty() ||
                          question.number("rank") == std::optional(worker.rank.value);
    if (is_meant && host_->forward_to(worker.local_rank, signal)) ++reached;
  }
  if (reached == 0) return operators::refusal("no such worker lives on this node");
  const std::string what = "sent " + signal_name(signal) + " to " + text::count(reached, "worker");
  log::info("an operator " + what);
  return operators::done(what);
}

// As if the agent had got the signal: SIGTERM lets the workers of all nodes save first. Asked again
// it hurries nothing; a real signal does.
std::string AgentDaemon::Impl::on_leave_question(const operators::Question& question) {
  using State = agent::Agent::State;
  const State state = core_->state();
  if (state == State::Leaving || state == State::Draining || state == State::Saved) {
    return operators::refusal("this node is leaving already");
  }
  const bool saves = question.number("resumable") == 1;
  log::info(saves ? "an operator asks this node to save and leave"
                  : "an operator asks this node to leave");
  // Once it is answered: the core may end the loop at once.
  asio::post(loop_, [this, saves] {
    host_->hurry();
    tell_core(
        [&](agent::Effects& e) { core_->on_signal(boot_now(), saves ? SIGTERM : SIGINT, e); });
  });
  return operators::done(saves ? "asked to save and leave" : "asked to leave");
}

}  // namespace cpprun
