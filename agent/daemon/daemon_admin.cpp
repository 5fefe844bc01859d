// AgentDaemon: admin queries from tools on this machine, and reports for the dashboard.
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "agent/daemon/daemon_impl.hpp"
#include "agent/daemon/stream_routes.hpp"
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

admin::WorkerView view_of(const LiveWorker& worker) {
  admin::WorkerView view;
  view.rank = worker.rank.value;
  view.local_rank = worker.local_rank.value;
  view.pid = worker.pid;
  view.memory_bytes = resident_bytes(worker.pid);
  if (const auto& beat = worker.heartbeat) {
    view.progress = admin::WorkerProgress{beat->step, beat->collectives, beat->phase, beat->age,
                                          beat->step_takes};
  }
  return view;
}

}  // namespace

std::string AgentDaemon::Impl::operator_token() {
  const char* token = std::getenv("CPPRUN_ADMIN_TOKEN");
  return token == nullptr ? "" : token;
}

void AgentDaemon::Impl::open_admin_socket() {
  using admin::AdminQuery;
  using Answer = AdminSocket::Answer;
  admin_.on("status", [this](const AdminQuery&, const Answer& answer) {
    answer(admin::encode(node_view()));
  });
  admin_.on("signal", [this](const AdminQuery& query, const Answer& answer) {
    answer(on_signal_query(query));
  });
  admin_.on("leave", [this](const AdminQuery& query, const Answer& answer) {
    answer(on_leave_query(query));
  });
  admin_.on("stacks",
            [this](const AdminQuery& query, const Answer& answer) { stacks_.ask(query, answer); });
  admin_.on("admin_command", [this](const AdminQuery& query, const Answer& answer) {
    admin_commands_.ask(query, answer);
  });
  if (Status ok = admin_.open(); !ok) log::info(ok.error().text);
}

admin::NodeView AgentDaemon::Impl::node_view() const {
  admin::NodeView view;
  view.run_id = config_.rendezvous.run_id;
  view.node = host_name_;
  view.title = config_.workers.title;
  view.pid = ::getpid();
  view.state = name_of(core_->state());
  view.is_host = is_own_;
  if (is_connected()) view.coordinator = to_string(coordinator_peer_);
  const control::RankAssignment& assignment = core_->assignment();
  view.round = assignment.round.value;
  view.group_rank = assignment.group_rank;
  view.group_size = assignment.group_size;
  view.world_size = assignment.world_size;
  view.restarts_used = assignment.restart_count;
  view.max_restarts = config_.max_restarts;
  view.up = boot_now() - begun_at_;
  view.run_folder = folder_.run_folder();
  if (!core_->snapshots().empty()) view.snapshot_step = core_->snapshots().front().step;
  for (const LiveWorker& worker : host_->live()) {
    admin::WorkerView one = view_of(worker);
    const auto rank = static_cast<int>(worker.local_rank.value);
    StreamRoutes streams = route_streams(config_.logs, folder_, rank, "");
    one.stdout_file = std::move(streams.out.file);
    one.stderr_file = std::move(streams.err.file);
    view.workers.push_back(std::move(one));
  }
  return view;
}

void AgentDaemon::Impl::open_dashboard() {
  ProgressReporter::Callbacks progress;
  progress.live = [this] { return host_->live(); };
  progress.round = [this] { return core_->assignment().round; };
  progress.send = [this](const control::Progress& told) { connection_->send(told); };
  progress_ = std::make_unique<ProgressReporter>(loop_, std::move(progress));
  LogTailReporter::Callbacks tails;
  tails.files = [this](int local_rank) {
    StreamRoutes streams = route_streams(config_.logs, folder_, local_rank, "");
    return LogTailReporter::Files{std::move(streams.out.file), std::move(streams.err.file)};
  };
  tails.round = [this] { return core_->assignment().round; };
  tails.send = [this](const control::LogLines& lines) { connection_->send(lines); };
  tails.workers = config_.workers.nproc;
  tails_ = std::make_unique<LogTailReporter>(loop_, std::move(tails));
}

// Sends a signal to the process group of one worker, or of all workers of this node.
std::string AgentDaemon::Impl::on_signal_query(const admin::AdminQuery& query) {
  const std::optional<int64_t> number = query.number("signal");
  if (!number || *number < 1 || *number > kLastSignal) {
    return admin::refusal("'" + query.parameter("signal") + "' is no signal's number (1 to 64)");
  }
  const auto signal = static_cast<int>(*number);
  size_t reached = 0;
  for (const LiveWorker& worker : host_->live()) {
    const bool is_meant =
        query.parameter("rank").empty() || query.number("rank") == std::optional(worker.rank.value);
    if (is_meant && host_->forward_to(worker.local_rank, signal)) ++reached;
  }
  if (reached == 0) return admin::refusal("no such worker lives on this node");
  const std::string what = "sent " + signal_name(signal) + " to " + text::count(reached, "worker");
  log::info("an operator " + what);
  return admin::done(what);
}

// Acts as if the agent had received a signal: SIGTERM lets the workers of all nodes save first. A
// second query is refused; only a second real signal stops the workers faster.
std::string AgentDaemon::Impl::on_leave_query(const admin::AdminQuery& query) {
  using State = agent::Agent::State;
  const State state = core_->state();
  if (state == State::Leaving || state == State::Draining || state == State::Saved) {
    return admin::refusal("this node is leaving already");
  }
  const bool saves = query.number("resumable") == 1;
  log::info(saves ? "an operator asks this node to save and leave"
                  : "an operator asks this node to leave");
  // Posted, so that the reply leaves first: the core may end the loop at once.
  asio::post(loop_, [this, saves] {
    host_->hurry();
    run_core([&](agent::Effects& e) { core_->on_signal(boot_now(), saves ? SIGTERM : SIGINT, e); });
  });
  return admin::done(saves ? "asked to save and leave" : "asked to leave");
}

}  // namespace cpprun
