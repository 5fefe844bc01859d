// AgentDaemon: how the core's wishes are carried out.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/core/worker_plan.hpp"
#include "agent/daemon/daemon_impl.hpp"
#include "agent/daemon/worker_specs.hpp"
#include "common/check.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"

namespace cpprun {

namespace asio = boost::asio;

void AgentDaemon::Impl::carry_out(const agent::Disconnect& effect) {
  close(effect.is_reset);
}

void AgentDaemon::Impl::close(bool is_reset) {
  if (std::exchange(is_closing_, true)) return;
  if (!connection_) return asio::post(loop_, [this] { end_loop(); });
  connection_->close(is_reset, [this] { end_loop(); });
}

// If it fails, the grant ends, and the run with the join timeout.
void AgentDaemon::Impl::carry_out(const agent::TakeOver& effect) {
  Result<Endpoint> own = take_over_(effect.epoch, effect.place);
  if (!own) return log::error("this node can't lead the job: " + own.error().text);
  is_own_ = true;
  connection_->set_routes({*own}, true, true);
}

// `is_sure`: it is led from there, whoever listens in our own process.
void AgentDaemon::Impl::carry_out(const agent::Routes& effect) {
  if (effect.is_sure) is_own_ = false;
  if (connection_) connection_->set_routes(effect.places, effect.is_sure, false);
}

void AgentDaemon::Impl::carry_out(const agent::StartWorkers& effect) {
  recorder_->starting();
  if (Status ok = start_workers(effect.world); !ok) {
    tell_core([&](agent::Effects& e) { core_->on_start_failed(boot_now(), ok.error(), e); });
    return;
  }
  recorder_->round_started();
  if (faults_) faults_->on_started(effect.world, config_.workers.nproc);
}

Status AgentDaemon::Impl::start_workers(const control::World& world) {
  int attempt = static_cast<int>(agent::restarts_of(world));
  begin_files(folder_.begin_attempt(attempt, world.round.value, config_.workers.nproc));
  int64_t port = world.store_port != 0 ? world.store_port : coordinator_.port;
  agent::WorkerPlace place;
  place.store = to_string(Endpoint{connection_->peer_address(), static_cast<uint16_t>(port)});
  place.token = token_;
  place.agent = host_->channel_name();
  place.host_name = host_name_;
  const std::vector<WorkerSpec> specs = worker_specs(config_, world, folder_, std::move(place));
  if (timers_) {
    if (Status open = timers_->begin_round(); !open) return open;
  }
  if (!host_->is_quiet()) {
    return Error{ErrorKind::System, "processes of a start that failed have not ended yet"};
  }
  if (Status started = host_->start(specs); !started) return started;
  watch_workers(world);
  say_debugged_worker(specs, world.world_size);
  return {};
}

void AgentDaemon::Impl::watch_workers(const control::World& world) {
  const std::string folder = folder_.run_folder();
  hangs_->begin_round(
      folder.empty() ? "" : folder + "/hang_round_" + std::to_string(world.round.value) + ".txt");
  const bool is_served_here = !world.is_agent_store && world.group_rank == 0;
  if (is_served_here) store_monitor_.begin_round(static_cast<uint16_t>(world.master_port));
}

void AgentDaemon::Impl::unwatch_workers() {
  hangs_->end_round();
  store_monitor_.end_round();
}

// A full disk stops nothing. Said once, until there is room again.
void AgentDaemon::Impl::begin_files(const Status& made) {
  if (!std::exchange(has_no_files_, !made.ok()) && !made.ok()) {
    log::warning(made.error().text +
                 "; this round's workers keep no log and error files, what they say goes to the "
                 "console");
  }
}

void AgentDaemon::Impl::say_debugged_worker(const std::vector<WorkerSpec>& specs,
                                            int64_t world_size) const {
  if (config_.debug_rank && *config_.debug_rank >= world_size) {
    log::warning("--debug-rank=" + std::to_string(*config_.debug_rank) +
                 ": no worker waits for a debugger, since ranks go from 0 to " +
                 std::to_string(world_size - 1) + "; and nothing counts as a hang");
  }
  const std::vector<int> pids = host_->pids();
  for (size_t i = 0; i < std::min(specs.size(), pids.size()); ++i) {
    if (!config_.debug_rank || specs[i].rank.value != *config_.debug_rank) continue;
    const std::string pid = std::to_string(pids[i]);
    log::warning("rank " + std::to_string(*config_.debug_rank) + " (pid " + pid +
                 ") waits for a debugger before its program begins: gdb -p " + pid +
                 "; without one, kill -CONT " + pid + " lets it begin");
  }
}

void AgentDaemon::Impl::on_word(int local_rank, WorkerWord word) {
  const LocalRank worker(local_rank);
  if (word == WorkerWord::Connected) recorder_->worker_connected(worker);
  if (word == WorkerWord::Resumed) recorder_->worker_resumed(worker);
  if (word == WorkerWord::Stepped) recorder_->worker_stepped(worker);
  if (word == WorkerWord::EndedBeforeStep) core_->on_no_step(worker);
}

// Said of each that has not ended while it was looked at.
void AgentDaemon::Impl::on_stuck(const std::vector<std::string>& lines) {
  const std::vector<StuckProcess> stuck = host_->stuck();
  if (stuck.empty() || finish_) return;
  for (const std::string& line : lines) {
    log::warning(line);
    recorder_->warning(line);
  }
  std::string what = name_of(stuck.front());
  if (stuck.size() > 1) what += " and " + text::count(stuck.size() - 1, "other");
  tell_core([&](agent::Effects& e) { core_->on_stuck(what, e); });
}

// At the end of the run, where nobody looks at them any more.
void AgentDaemon::Impl::say_unended(const std::vector<StuckProcess>& left) const {
  if (finish_->how == agent::Finish::How::Unusable) return;
  for (const StuckProcess& process : left) {
    log::warning(name_of(process) +
                 " has not ended after SIGKILL; cpprun does not wait for it any longer");
  }
}

void AgentDaemon::Impl::carry_out(const agent::StopWorkers& effect) {
  recorder_->stopping();
  unwatch_workers();
  if (effect.is_urgent) host_->be_urgent();
  if (effect.lets_save) {
    host_->stop_saving(effect.signal, effect.grace);
  } else {
    host_->stop(effect.signal, effect.grace);
  }
}

void AgentDaemon::Impl::carry_out(const agent::WantPort&) {
  bool is_needed = config_.rendezvous.worker_store == WorkerStore::Rank0;
  if (is_needed && !config_.rendezvous.master_port) {
    port_.reset();
    Result<PortReservation> fresh = PortReservation::make(std::nullopt);
    if (!fresh) {
      tell_core([&](agent::Effects& e) { core_->on_unreachable(boot_now(), fresh.error(), e); });
      return;
    }
    port_.emplace(std::move(*fresh));
  }
  int64_t number = port_ ? port_->port() : 0;
  tell_core([&](agent::Effects& e) { core_->on_port(boot_now(), number, e); });
}

void AgentDaemon::Impl::carry_out(const agent::Note& effect) {
  switch (effect.level) {
    case agent::Note::Level::Debug:
      log::debug(effect.text);
      return;
    case agent::Note::Level::Info:
      log::info(effect.text);
      return;
    case agent::Note::Level::Warning:
      log::warning(effect.text);
      recorder_->warning(effect.text);
      return;
  }
}

void AgentDaemon::Impl::carry_out(const agent::Finish& effect) {
  finish_ = effect;
  const bool is_error = effect.how == agent::Finish::How::Error;
  bool is_cut_off = is_error && connection_ && !connection_->trouble().empty();
  if (is_error && !no_election_.empty()) {
    finish_->text += "; " + no_election_;
  } else if (is_cut_off) {
    finish_->text += "; tried last: " + to_string(coordinator_) + ": " + connection_->trouble();
  }
  close(true);  // unless a farewell is already on its way
}

void AgentDaemon::Impl::end_loop() {
  CPPRUN_CHECK(finish_.has_value());
  loop_.stop();
}

}  // namespace cpprun
