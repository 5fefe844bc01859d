#include "agent/daemon/faults/fault_injector.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/exit_code.hpp"
#include "common/faults/fault_report_text.hpp"
#include "common/limits/faults.hpp"
#include "common/limits/log.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

std::optional<int64_t> known(int64_t number) {
  return number < 0 ? std::nullopt : std::optional(number);
}

}  // namespace

FaultInjector::FaultInjector(boost::asio::io_context& loop, const FaultConfig& config,
                             Callbacks callbacks)
    : config_(config),
      callbacks_(std::move(callbacks)),
      schedule_(*config.plan),
      report_(*config.plan),
      timer_(loop, [this] { on_time(); }),
      began_at_(boot_now()) {}

void FaultInjector::on_connected() {
  is_connected_ = true;
  for (const PermitRequest& permit_request : permit_requests_)
    callbacks_.request_permit(request_of(permit_request));
}

// Workers do not wait for the next connection; requests of timed faults are sent again.
void FaultInjector::on_disconnected() {
  is_connected_ = false;
  std::deque<PermitRequest> kept;
  for (PermitRequest& permit_request : std::exchange(permit_requests_, {})) {
    if (permit_request.answer) {
      permit_request.answer(false);
    } else {
      kept.push_back(std::move(permit_request));
    }
  }
  permit_requests_ = std::move(kept);
}

void FaultInjector::on_message(const control::CoordinatorMessage& message) {
  if (!std::holds_alternative<control::FaultPermit>(message)) return;
  const auto& permit = std::get<control::FaultPermit>(message);
  const auto fault = static_cast<size_t>(permit.fault);
  const bool is_known = permit.fault >= 0 && fault < config_.plan->faults.size();
  if (permit.is_permitted && is_known) {
    const faults::Progress progress{known(permit.step), known(permit.epoch)};
    report_.on_injected(boot_now(), fault, here_ ? here_->round : 0, permit.where, progress);
  }
  if (!permit.is_answer || permit_requests_.empty()) return;
  const PermitRequest permit_request = std::move(permit_requests_.front());
  permit_requests_.pop_front();
  if (permit.is_permitted && is_known) carry_out(permit_request);
  if (permit_request.answer) permit_request.answer(permit.is_permitted);
}

void FaultInjector::ask(PermitRequest permit_request) {
  const bool can_ask = is_connected_ || !permit_request.answer;
  if (!can_ask || permit_requests_.size() >= limits::kFaultPermitRequests) {
    if (permit_request.answer) permit_request.answer(false);
    return;
  }
  if (is_connected_) callbacks_.request_permit(request_of(permit_request));
  permit_requests_.push_back(std::move(permit_request));
}

control::FaultPermitRequest FaultInjector::request_of(const PermitRequest& permit_request) const {
  control::FaultPermitRequest injected;
  injected.fault = static_cast<int64_t>(permit_request.fault);
  injected.times = config_.plan->faults[permit_request.fault].times;
  injected.where = where(permit_request);
  injected.step = permit_request.progress.step.value_or(-1);
  injected.epoch = permit_request.progress.epoch.value_or(-1);
  return injected;
}

std::string FaultInjector::where(const PermitRequest& permit_request) const {
  std::string text = permit_request.local_rank
                         ? "rank " + std::to_string(here_->base_rank + *permit_request.local_rank)
                         : "node " + std::to_string(here_->node);
  text += " in round " + std::to_string(permit_request.round);
  const faults::Progress& at = permit_request.progress;
  if (at.epoch) text += ", training epoch " + std::to_string(*at.epoch);
  if (at.step) text += ", step " + std::to_string(*at.step);
  return text;
}

void FaultInjector::on_started(const control::RankAssignment& assignment, int workers) {
  here_ = faults::Placement{assignment.round.value, assignment.restart_count, assignment.group_rank,
                            assignment.group_size,  assignment.base_rank,     workers,
                            assignment.world_size};
  is_running_ = true;
  report_.on_started(boot_now(), assignment.round.value, assignment.restart_count);
  schedule_.on_started(boot_now(), *here_);
  for (EarlyRequest& early : std::exchange(early_requests_, {}))
    on_permit_requested(early.local_rank, early.request, std::move(early.answer));
  arm();
}

void FaultInjector::on_stopped() {
  is_running_ = false;
  for (const EarlyRequest& early : std::exchange(early_requests_, {})) early.answer(false);
  schedule_.on_stopped();
  active_faults_.clear();  // their processes are gone
  arm();
}

// The request is untrusted: the fault must exist and have a position in the program.
void FaultInjector::on_permit_requested(int local_rank,
                                        const channel::FaultPermitRequest& permit_request,
                                        std::function<void(bool)> answer) {
  const size_t fault = permit_request.fault;
  const bool is_sensible =
      fault < config_.plan->faults.size() && config_.plan->faults[fault].is_at_place();
  if (!is_sensible) return answer(false);
  if (!is_running_) {
    if (early_requests_.size() >= limits::kFaultPermitRequests) return answer(false);
    early_requests_.push_back({local_rank, permit_request, std::move(answer)});
    return;
  }
  const faults::Progress progress{known(permit_request.step), known(permit_request.epoch)};
  ask({fault, local_rank, here_->round, progress, std::move(answer)});
}

void FaultInjector::on_began(const channel::Began& began) {
  report_.on_began({known(began.step), known(began.epoch)});
}

void FaultInjector::on_time() {
  end_active_faults(boot_now());
  for (const faults::DueFault& due : schedule_.take_due(boot_now())) {
    PermitRequest permit_request{due.fault, std::nullopt, here_->round, {}, nullptr};
    if (due.rank) {
      permit_request.local_rank = static_cast<int>(*due.rank - here_->base_rank);
      permit_request.progress.step = callbacks_.step_of(*permit_request.local_rank);
    }
    ask(std::move(permit_request));
  }
  arm();
}

void FaultInjector::arm() {
  Instant next = schedule_.next_deadline();
  for (const ActiveFault& one : active_faults_) next = std::min(next, one.until);
  timer_.set(next.is_never() ? next : std::max(next, boot_now()));
}

void FaultInjector::carry_out(const PermitRequest& permit_request) {
  const faults::Fault& fault = config_.plan->faults[permit_request.fault];
  log::status("fault " + std::to_string(permit_request.fault + 1) + " is injected at " +
              where(permit_request) + ": " + faults::describe(fault));
  if (fault.what == faults::FaultKind::KillAgent) {
    log::finish(limits::kLogFlushTimeout);  // a file gets its lines from another thread
    ::kill(::getpid(), SIGKILL);
  } else if (fault.what == faults::FaultKind::DropCoordinator) {
    callbacks_.drop_connection();
  } else if (const auto pid = callbacks_.pid_of(permit_request.local_rank.value_or(-1));
             pid && is_running_ && here_->round == permit_request.round) {
    inject_into_worker(permit_request, *pid);
  } else {
    log::warning("fault " + std::to_string(permit_request.fault + 1) +
                 " came too late: " + "its worker had ended");
  }
}

void FaultInjector::inject_into_worker(const PermitRequest& permit_request, int pid) {
  const faults::Fault& fault = config_.plan->faults[permit_request.fault];
  switch (fault.what) {
    case faults::FaultKind::Kill: ::kill(pid, SIGKILL); return;
    case faults::FaultKind::Stop:
      ::kill(pid, SIGSTOP);
      if (fault.lasts > Duration{}) {
        active_faults_.push_back({boot_now() + fault.lasts, pid, fault.what});
        arm();
      }
      return;
    case faults::FaultKind::DiskFull: return fill_disk(pid, fault.lasts);
    default: return;  // the program injects it itself
  }
}

// With a file size limit of 0 every write to a file fails; pipes and existing files stay as they
// are.
void FaultInjector::fill_disk(int pid, Duration lasts) {
  rlimit before{};
  if (::prlimit(pid, RLIMIT_FSIZE, nullptr, &before) != 0) return;
  const rlimit full{0, before.rlim_max};
  ::prlimit(pid, RLIMIT_FSIZE, &full, nullptr);
  if (lasts == Duration{}) return;
  active_faults_.push_back({boot_now() + lasts, pid, faults::FaultKind::DiskFull, before.rlim_cur});
  arm();
}

void FaultInjector::end_active_faults(Instant now) {
  for (auto one = active_faults_.begin(); one != active_faults_.end();) {
    if (one->until > now) {
      ++one;
      continue;
    }
    bool is_alive = false;  // the pid of a reaped worker may belong to another process
    for (int rank = 0; here_ && rank < here_->workers; ++rank) {
      is_alive = is_alive || callbacks_.pid_of(rank) == one->pid;
    }
    rlimit limit{};
    if (is_alive && one->what == faults::FaultKind::Stop) ::kill(one->pid, SIGCONT);
    if (is_alive && one->what == faults::FaultKind::DiskFull &&
        ::prlimit(one->pid, RLIMIT_FSIZE, nullptr, &limit) == 0) {
      limit.rlim_cur = one->file_bytes;
      ::prlimit(one->pid, RLIMIT_FSIZE, &limit, nullptr);
    }
    one = active_faults_.erase(one);
  }
}

int FaultInjector::finish(int exit_code) {
  const std::string hash = final_hash();
  const std::vector<faults::ExpectationResult> results =
      report_.check_expectations(exit_code, hash);
  log::plain(faults::report_text(report_, results));
  const double seconds = to_seconds(boot_now() - began_at_);
  bool is_written = write(config_.junit, faults::junit(report_, results, seconds));
  const faults::Summary summary = faults::summarize(report_, results, hash);
  is_written = write(config_.report_file, faults::encode(summary)) && is_written;
  if (exit_code >= kSignalBase || exit_code == kNodeUnusable || !config_.plan->expect)
    return exit_code;
  if (!is_written) return kExpectationsFailed;
  return summary.is_held ? kSuccess : kExpectationsFailed;
}

std::string FaultInjector::final_hash() const {
  const auto& expect = config_.plan->expect;
  if (!expect || !expect->final_hash) return "";
  const std::optional<std::string> bytes = read_file(expect->final_hash->file);
  return bytes ? archive::crc32_text(archive::crc32(archive::bytes_of(*bytes))) : "";
}

bool FaultInjector::write(const std::string& path, const std::string& text) const {
  if (path.empty() || write_file(path, text)) return true;
  log::error("the account of the faults could not be written to '" + path + "'");
  return false;
}

}  // namespace cpprun
