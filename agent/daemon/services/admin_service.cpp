#include "agent/daemon/services/admin_service.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <functional>
#include <utility>

#include "agent/daemon/stream_routes.hpp"
#include "agent/process/diagnostics/process_sampler.hpp"
#include "agent/process/diagnostics/stack_collector.hpp"
#include "agent/process/proc_files.hpp"
#include "common/limits/admin.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "common/proof/hmac.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

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

std::vector<admin::WorkerStack> stacks_of(std::vector<StackTarget> targets) {
  for (StackTarget& target : targets) sample_process(target.worker);
  size_t room = limits::kAdminReplyBytes / 3;  // bytes of plain text; as JSON they may double
  std::vector<admin::WorkerStack> stacks;
  const std::vector<std::string> texts = cpprun::collect_stacks(targets);
  for (size_t i = 0; i < texts.size(); ++i) {
    const WorkerObservation& worker = targets[i].worker;
    const bool fits = texts[i].size() <= room;
    room -= fits ? texts[i].size() : 0;
    stacks.push_back({worker.rank.value, worker.pid,
                      fits ? texts[i] : summary_of(worker) + "; ask for it with --rank\n"});
  }
  return stacks;
}

Result<control::AdminCommand> command_of(const admin::AdminQuery& query) {
  const std::optional<control::AdminCommandKind> kind =
      control::admin_command_kind(query.parameter("kind"));
  if (!kind) {
    return Error{
        ErrorKind::BadValue,
        "'" + query.parameter("kind") +
            "' is no admin command; there are restart, stop, drain, scale, exclude, readmit"};
  }
  control::AdminCommand command;
  command.kind = *kind;
  command.is_resumable = query.number("resumable") == 1;
  command.node = query.parameter("node");
  command.nodes = query.number("nodes").value_or(0);
  command.reason = query.parameter("reason");
  return command;
}

}  // namespace

AdminService::AdminService(boost::asio::io_context& loop, Node node, Callbacks callbacks)
    : loop_(loop),
      node_(node),
      callbacks_(std::move(callbacks)),
      token_(admin_token()),
      background_(loop),
      socket_(loop) {
  using admin::AdminQuery;
  using Answer = AdminSocket::Answer;
  const auto on_verb = [this](const char* verb, auto answer_of) {
    socket_.on(verb, [answer_of](const AdminQuery& query, const Answer& answer) {
      answer(answer_of(query));
    });
  };
  on_verb("status", [this](const AdminQuery&) { return admin::encode(node_view()); });
  on_verb("goodput", [this](const AdminQuery&) { return callbacks_.goodput(); });
  on_verb("signal", [this](const AdminQuery& query) { return signal_workers(query); });
  on_verb("leave", [this](const AdminQuery& query) { return leave(query); });
  socket_.on("stacks", std::bind_front(&AdminService::collect_stacks, this));
  socket_.on("admin_command", std::bind_front(&AdminService::relay, this));
}

admin::NodeView AdminService::node_view() const {
  const AgentConfig& config = node_.config;
  admin::NodeView view;
  view.run_id = config.rendezvous.run_id;
  view.node = node_.name;
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
  view.min_nodes = config.rendezvous.min_nodes;
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

void AdminService::collect_stacks(const admin::AdminQuery& query,
                                  const AdminSocket::Answer& answer) {
  if (stacks_answer_) {
    return answer(admin::refusal("another command reads the stacks already; try again"));
  }
  std::vector<StackTarget> targets = node_.host.look();
  if (const std::optional<int64_t> rank = query.number("rank")) {
    std::erase_if(targets, [&](const StackTarget& w) { return w.worker.rank.value != *rank; });
  }
  if (targets.empty()) return answer(admin::refusal("no such worker lives on this node"));
  stacks_answer_ = answer;
  const auto done = [this](const std::vector<admin::WorkerStack>& stacks) {
    std::exchange(stacks_answer_, nullptr)(admin::encode(stacks));
  };
  const Status started =
      background_.run([targets = std::move(targets)] { return stacks_of(targets); }, done);
  if (!started) std::exchange(stacks_answer_, nullptr)(admin::refusal(started.error().text));
}

// ---------------------------------------------------------------- admin commands

void AdminService::relay(const admin::AdminQuery& query, const AdminSocket::Answer& answer) {
  Result<control::AdminCommand> command = command_of(query);
  if (!command) return answer(admin::refusal(command.error().text));
  if (relayed_.size() >= limits::kAdminConnections) {
    return answer(admin::refusal("the coordinator has not answered earlier admin commands yet"));
  }
  command->id = ++last_command_;
  if (!callbacks_.send(*command)) {
    return answer(admin::refusal(
        "this node has no connection to the coordinator, which would have to decide; "
        "cpprunctl stop --here stops the nodes of this machine"));
  }
  relayed_[command->id] = {*command, answer};
}

void AdminService::on(const control::Challenge& challenge) {
  const auto found = relayed_.find(challenge.id);
  if (found == relayed_.end()) return;
  if (token_.empty()) {
    return relayed_.extract(found).mapped().answer(admin::refusal(
        "the job was started with CPPRUN_ADMIN_TOKEN, and the agent of this node without it; "
        "set it on all nodes, or give the command with the token in the environment and --endpoint "
        "HOST:PORT of the job's rendezvous"));
  }
  control::AdminRequest request{node_.config.rendezvous.run_id, found->second.command};
  request.mac = hmac_of(token_, control::admin_mac_input(challenge.nonce, request));
  callbacks_.send(request);
}

void AdminService::on(const control::AdminReply& reply) {
  const auto found = relayed_.extract(reply.id);
  if (found.empty()) return;
  found.mapped().answer(reply.is_done ? admin::done(reply.text) : admin::refusal(reply.text));
}

void AdminService::on_disconnected() {
  for (const auto& [id, relayed] : std::exchange(relayed_, {})) {
    relayed.answer(
        admin::refusal("the connection to the coordinator broke; whether it has received the "
                       "command is not known, "
                       "cpprunctl status shows it"));
  }
}

}  // namespace cpprun
