#include "agent/daemon/services/admin_service.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>

#include "agent/daemon/round_starter.hpp"
#include "agent/process/proc_files.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {

namespace {

const char* name_of(agent::Agent::State state) {
  using State = agent::Agent::State;
  switch (state) {
    case State::Joining: return "joining";
    case State::Starting: return "starting";
    case State::Running: return "running";
    case State::Stopping: return "stopping";
    case State::Stopped: return "stopped";
    case State::Done: return "done";
    case State::Leaving: return "leaving";
    case State::Draining: return "draining";
    case State::Saved: return "saved";
    case State::Ended: return "ended";
  }
  return "unknown";
}

admin::WorkerView view_of(const LiveWorker& worker) {
  admin::WorkerView view;
  view.rank = worker.rank.value;
  view.local_rank = worker.local_rank.value;
  view.pid = worker.pid;
  view.memory_bytes = resident_bytes(worker.pid);
  view.progress = worker.heartbeat;
  return view;
}

}  // namespace

AdminService::AdminService(boost::asio::io_context& loop, Node node, Callbacks callbacks)
    : loop_(loop),
      node_(node),
      callbacks_(std::move(callbacks)),
      commands_(callbacks_.send, node_.config.rendezvous.run_id, admin_token()),
      stacks_(loop, [this] { return node_.host.look(); }),
      socket_(loop) {
  using admin::AdminQuery;
  using Answer = AdminSocket::Answer;
  socket_.on("status", [this](const AdminQuery&, const Answer& answer) {
    answer(admin::encode(node_view()));
  });
  socket_.on("signal", [this](const AdminQuery& query, const Answer& answer) {
    answer(signal_workers(query));
  });
  socket_.on("leave",
             [this](const AdminQuery& query, const Answer& answer) { answer(leave(query)); });
  socket_.on("stacks",
             [this](const AdminQuery& query, const Answer& answer) { stacks_.ask(query, answer); });
  socket_.on("admin_command", [this](const AdminQuery& query, const Answer& answer) {
    commands_.ask(query, answer);
  });
}

void AdminService::on_message(const control::CoordinatorMessage& message) {
  if (const auto* reply = std::get_if<control::AdminReply>(&message)) commands_.on_answer(*reply);
  if (const auto* challenge = std::get_if<control::Challenge>(&message)) {
    commands_.on_challenge(*challenge);
  }
}

admin::NodeView AdminService::node_view() const {
  const AgentConfig& config = node_.config;
  admin::NodeView view;
  view.run_id = config.rendezvous.run_id;
  view.node = node_.host_name;
  view.title = config.workers.title;
  view.pid = ::getpid();
  view.state = name_of(node_.core.state());
  view.is_host = callbacks_.hosts_coordinator();
  if (const std::optional<Endpoint> at = callbacks_.coordinator())
    view.coordinator = to_string(*at);
  const control::RankAssignment& assignment = node_.core.assignment();
  view.round = assignment.round.value;
  view.group_rank = assignment.group_rank;
  view.group_size = assignment.group_size;
  view.world_size = assignment.world_size;
  view.restarts_used = assignment.restart_count;
  view.max_restarts = config.max_restarts;
  view.up = boot_now() - node_.begun_at;
  view.run_folder = node_.folder.run_folder();
  if (!node_.core.snapshots().empty()) view.snapshot_step = node_.core.snapshots().front().step;
  for (const LiveWorker& worker : node_.host.live()) {
    admin::WorkerView one = view_of(worker);
    const auto rank = static_cast<int>(worker.local_rank.value);
    StreamRoutes streams = route_streams(config.logs, node_.folder, rank, "");
    one.stdout_file = std::move(streams.out.file);
    one.stderr_file = std::move(streams.err.file);
    view.workers.push_back(std::move(one));
  }
  return view;
}

// Sends a signal to the process group of one worker, or of all workers of this node.
std::string AdminService::signal_workers(const admin::AdminQuery& query) {
  const std::optional<int64_t> number = query.number("signal");
  if (!number || *number < 1 || *number > kLastSignal) {
    return admin::refusal("'" + query.parameter("signal") + "' is no signal's number (1 to 64)");
  }
  const auto signal = static_cast<int>(*number);
  size_t reached = 0;
  for (const LiveWorker& worker : node_.host.live()) {
    const bool is_meant =
        query.parameter("rank").empty() || query.number("rank") == std::optional(worker.rank.value);
    if (is_meant && node_.host.forward_to(worker.local_rank, signal)) ++reached;
  }
  if (reached == 0) return admin::refusal("no such worker lives on this node");
  const std::string what = "sent " + signal_name(signal) + " to " + text::count(reached, "worker");
  log::info("an operator " + what);
  return admin::done(what);
}

// Acts as if the agent had received a signal: SIGTERM lets the workers of all nodes save first. A
// second query is refused; only a second real signal stops the workers faster.
std::string AdminService::leave(const admin::AdminQuery& query) {
  using State = agent::Agent::State;
  const State state = node_.core.state();
  if (state == State::Leaving || state == State::Draining || state == State::Saved) {
    return admin::refusal("this node is leaving already");
  }
  const bool saves = query.number("resumable") == 1;
  log::info(saves ? "an operator asks this node to save and leave"
                  : "an operator asks this node to leave");
  // Posted, so that the reply leaves first: the core may end the loop at once.
  boost::asio::post(loop_, [leave = callbacks_.leave, saves] { leave(saves ? SIGTERM : SIGINT); });
  return admin::done(saves ? "asked to save and leave" : "asked to leave");
}

}  // namespace cpprun
