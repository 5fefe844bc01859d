#include "agent/process/preload/preloader.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "agent/process/preload/fork_batch.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using boost::asio::posix::stream_descriptor;

std::string shown_module(const std::string& name) {
  std::string shown = name;
  std::ranges::replace(shown, ':', '.');
  return shown;
}

}  // namespace

Preloader::Preloader(boost::asio::io_context& loop, PreloadPlan plan, const rlimit& descriptors,
                     std::function<void(const std::string&)> warn)
    : loop_(loop),
      plan_(std::make_shared<const PreloadPlan>(std::move(plan))),
      descriptors_(descriptors),
      warn_(std::move(warn)),
      spawner_([this, way = poster_] { LoopPoster::post(way, [this] { on_spawned(); }); }),
      socket_(loop),
      end_(loop),
      timer_(loop, [this] { on_time(); }) {
  start_process();
}

Preloader::~Preloader() {
  poster_->close();
  end_process();
}

void Preloader::start_process() {
  end_process();
  loaded_.reset();
  state_ = State::Importing;
  importing_.clear();
  is_awaited_.reset();
  deadline_ = boot_now() + limits::kPreloadImportTimeout;
  timer_.set(deadline_);
  spawned_socket_ = std::make_shared<UniqueFd>();
  spawner_.begin({[plan = plan_, descriptors = descriptors_, socket = spawned_socket_](
                      SpawnContext& context, StartTicket& ticket) {
    return PreloadProcess::spawn(*plan, descriptors, context, ticket, *socket);
  }});
}

void Preloader::on_spawned() {
  for (SpawnThread::Outcome& outcome : spawner_.take()) {
    const bool is_wanted = state_ == State::Importing;
    if (!outcome.spawned) {
      if (is_wanted) give_up(SpawnReason::Interpreter, outcome.spawned.error().text);
      continue;
    }
    auto made =
        std::make_shared<PreloadProcess>(std::move(*outcome.spawned), std::move(*spawned_socket_));
    if (!is_wanted) continue;  // it came too late
    process_ = std::move(made);
    boost::system::error_code failed;
    socket_.assign(process_->socket(), failed);
    if (!failed) end_.assign(process_->pidfd(), failed);
    if (failed) {
      give_up(SpawnReason::Process, "the preload process cannot be watched: " + failed.message());
      continue;
    }
    watch_socket();
    watch_end();
  }
}

void Preloader::end_process() {
  // process_ closes them.
  for (stream_descriptor* watched : {&socket_, &end_}) {
    if (watched->is_open()) watched->release();
  }
  timer_.set(Instant::never());
  if (process_) process_->kill();
  process_.reset();
}

void Preloader::watch_socket() {
  socket_.async_wait(
      stream_descriptor::wait_read,
      lifetime_.guard([this, pid = process_->pid()](boost::system::error_code error) {
        if (error || !process_ || process_->pid() != pid) return;
        on_messages();
      }));
}

void Preloader::watch_end() {
  end_.async_wait(stream_descriptor::wait_read,
                  lifetime_.guard([this, pid = process_->pid()](boost::system::error_code error) {
                    if (error || !process_ || process_->pid() != pid) return;
                    on_messages();  // its last message may hold the reason of its end
                    if (process_ && process_->pid() == pid) on_end();
                  }));
}

void Preloader::on_messages() {
  const int pid = process_->pid();
  for (;;) {
    const std::vector<std::string> fields = process_->receive();
    if (fields.empty()) break;
    on_message(fields);
    if (!process_ || process_->pid() != pid) return;
  }
  // At the end of the stream the socket stays readable; watch_end() reports the end.
  if (!process_->has_closed()) watch_socket();
}

void Preloader::on_message(const std::vector<std::string>& fields) {
  const std::string& kind = fields.front();
  if (kind == "importing" && fields.size() == 2) {
    importing_ = shown_module(fields[1]);
  } else if (kind == "ready" && fields.size() == 3) {
    const double seconds = std::strtod(fields[1].c_str(), nullptr);
    loaded_ = Loaded{shown_module(fields[2]),
                     std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
    refusal_.clear();
    state_ = State::Ready;
    log::info("preload: " + (fields[2].empty() ? "nothing" : loaded_->modules) + " imported in " +
              text::seconds(loaded_->import_time, 2));
    settle();
  } else if (kind == "script" && fields.size() == 2) {
    on_script(fields[1] == "awaits");
  } else if (kind == "refused" && fields.size() == 4) {
    on_refused(fields);
  } else if (kind == "checked" && fields.size() == 2 && state_ == State::Checking) {
    state_ = State::Ready;
    if (fields[1].empty()) return settle();
    log::info("preload: " + fields[1] + " has changed; importing again");
    start_process();
    timer_.set(boot_now() + limits::kPreloadPollInterval);
  }
}

void Preloader::on_script(bool is_awaited) {
  is_awaited_ = is_awaited;
  if (is_awaited) return;
  refusal_ = "the script imports none of the modules";
  spawn_reason_ = SpawnReason::Script;
  log::info("preload: " + refusal_ + "; workers are spawned until the imports have ended");
  settle();
}

void Preloader::on_refused(const std::vector<std::string>& fields) {
  const std::string reason = (fields[2].empty() ? "" : shown_module(fields[2]) + ": ") + fields[3];
  if (fields[1] == "unneeded") {
    log::info("preload: workers are spawned: " + reason);
    return end_permanently(SpawnReason::Script, reason);
  }
  const SpawnReason kind = fields[1] == "interpreter" ? SpawnReason::Interpreter
                           : fields[1] == "script"    ? SpawnReason::Script
                                                      : SpawnReason::Module;
  give_up(kind, reason);
}

void Preloader::prepare(std::function<void()> done) {
  done_ = std::move(done);
  if (state_ == State::Off) return settle();
  if (state_ == State::Importing && is_awaited_ == false) return settle();
  if (state_ == State::Ready) {
    if (!process_->request_check()) return skip("the preload process does not answer");
    state_ = State::Checking;
    deadline_ = boot_now() + limits::kPreloadCheckTimeout;
  }
  timer_.set(boot_now() + limits::kPreloadPollInterval);
}

void Preloader::on_time() {
  if (state_ != State::Importing && state_ != State::Checking) return;
  if (done_ && process_ && process_->is_stopped()) return skip("the preload process is stopped");
  const bool is_late = boot_now() >= deadline_;
  if (is_late && state_ == State::Checking) {
    return skip("the file system of an imported module does not answer");
  }
  if (is_late && !process_) {
    spawner_.cancel();
    return give_up(SpawnReason::Interpreter,
                   "the start of " + plan_->command.front() + " has not returned");
  }
  if (is_late) {
    return give_up(SpawnReason::Module, "the import of " + importing_ + " has not ended within " +
                                            text::seconds(limits::kPreloadImportTimeout, 0));
  }
  const Instant next = boot_now() + limits::kPreloadPollInterval;
  timer_.set(done_ ? std::min(next, deadline_) : deadline_);
}

void Preloader::on_end() {
  const std::string how = process_->end_text();
  const bool was_importing = state_ == State::Importing;
  const std::string when =
      was_importing && !importing_.empty() ? " at the import of " + importing_ : "";
  const std::string reason = "the preload process has ended" + when + " (" + how + ")";
  // A module that exits does so again; a killed process is worth another attempt.
  if (was_importing && how.starts_with("exit")) {
    // Before any import the interpreter itself has ended.
    return give_up(is_awaited_ ? SpawnReason::Module : SpawnReason::Interpreter, reason);
  }
  skip(reason);
}

// For this round only: another process starts for the next one.
void Preloader::skip(const std::string& reason) {
  const bool is_late = ++failures_ >= limits::kPreloadFailures;
  if (is_late) return give_up(SpawnReason::Process, reason);
  end_process();
  loaded_.reset();
  refusal_ = reason;
  spawn_reason_ = SpawnReason::Process;
  state_ = State::Down;
  if (done_) {
    warn_("preload: workers are spawned in this round: " + reason);
    settle();  // starts them
  } else {
    log::info("preload: " + reason + "; starting another");
  }
  start_process();
}

void Preloader::give_up(SpawnReason kind, const std::string& reason) {
  warn_("preload: workers are spawned: " + reason);
  end_permanently(kind, reason);
}

void Preloader::end_permanently(SpawnReason kind, const std::string& reason) {
  end_process();
  loaded_.reset();
  state_ = State::Off;
  refusal_ = reason;
  spawn_reason_ = kind;
  settle();
}

void Preloader::settle() {
  if (state_ != State::Importing) timer_.set(Instant::never());
  if (const auto done = std::exchange(done_, nullptr)) done();
}

WorkerFork Preloader::worker_fork(size_t workers) {
  if (state_ != State::Ready) {
    return [reason = spawn_reason_](const SpawnPlan&) { return ForkAttempt{{}, reason}; };
  }
  const auto batch = std::make_shared<ForkBatch>(process_, workers);
  return [this, way = poster_, batch, pid = process_->pid(), import_time = loaded_->import_time,
          command = plan_->command](const SpawnPlan& plan) -> ForkAttempt {
    const bool is_python =
        plan.argv.size() > 2 && plan.argv[0] == command[0] && plan.argv[1] == command[1];
    if (!is_python) return {{}, SpawnReason::Debugger};
    if (plan.ticket->is_cancelled()) return {};
    Result<Spawned> forked = batch->fork_worker(plan);
    if (!forked && plan.ticket->is_cancelled()) return {};
    const std::optional<Error> error = forked ? std::nullopt : std::optional(forked.error());
    LoopPoster::post(way, [this, error, import_time, pid] { on_forked(error, pid, import_time); });
    if (!forked) return {{}, SpawnReason::Fork};
    return {std::move(*forked)};
  };
}

void Preloader::on_forked(const std::optional<Error>& error, int process, Duration import_time) {
  if (!error) {
    failures_ = 0;
    saved_time_ += import_time;
    return;
  }
  if (std::exchange(refusal_, error->text) != error->text) {
    warn_("preload: a worker is spawned: " + refusal_);
  }
  if (error->kind != ErrorKind::Timeout || !process_ || process_->pid() != process) return;
  start_process();
}

void Preloader::report(WorkerStarts& starts) const {
  starts.preload = state_ == State::Off                                  ? PreloadState::GivenUp
                   : state_ == State::Ready || state_ == State::Checking ? PreloadState::Ready
                                                                         : PreloadState::Importing;
  starts.saved_time = saved_time_;
  if (!loaded_) return;
  starts.import_time = loaded_->import_time;
  if (process_) starts.shared_bytes = process_->shared_bytes();
}

}  // namespace cpprun
