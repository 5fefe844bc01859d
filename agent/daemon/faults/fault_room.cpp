#include "agent/daemon/faults/fault_room.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "agent/process/clock.hpp"
#include "common/exit_code.hpp"
#include "common/faults/account_text.hpp"
#include "common/limits/faults.hpp"
#include "common/log/log.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

std::optional<int64_t> known(int64_t number) {
  return number < 0 ? std::nullopt : std::optional(number);
}

}  // namespace

FaultRoom::FaultRoom(boost::asio::io_context& loop, const FaultConfig& config, Doors doors)
    : config_(config),
      doors_(std::move(doors)),
      schedule_(*config.plan),
      account_(*config.plan),
      timer_(loop, [this] { on_time(); }),
      began_at_(boot_now()) {}

// ---------------------------------------------------------------- the coordinator's word

void FaultRoom::on_connected() {
  is_connected_ = true;
  for (const Question& question : questions_) doors_.ask_coordinator(strike_of(question));
}

// A worker does not wait for another connection; what was due at a time is asked again.
void FaultRoom::on_disconnected() {
  is_connected_ = false;
  std::deque<Question> kept;
  for (Question& question : std::exchange(questions_, {})) {
    if (question.answer) {
      question.answer(false);
    } else {
      kept.push_back(std::move(question));
    }
  }
  questions_ = std::move(kept);
}

void FaultRoom::on_struck(const control::Struck& struck) {
  const auto fault = static_cast<size_t>(struck.fault);
  const bool is_known = struck.fault >= 0 && fault < config_.plan->faults.size();
  if (struck.is_given && is_known) {
    const faults::Progress progress{known(struck.step), known(struck.training_epoch)};
    account_.on_struck(boot_now(), fault, here_ ? here_->round : 0, struck.where, progress);
  }
  if (!struck.is_answer || questions_.empty()) return;
  const Question question = std::move(questions_.front());
  questions_.pop_front();
  if (struck.is_given && is_known) carry_out(question);
  if (question.answer) question.answer(struck.is_given);
}

void FaultRoom::ask(Question question) {
  const bool can_ask = is_connected_ || !question.answer;
  if (!can_ask || questions_.size() >= limits::kFaultQuestions) {
    if (question.answer) question.answer(false);
    return;
  }
  if (is_connected_) doors_.ask_coordinator(strike_of(question));
  questions_.push_back(std::move(question));
}

control::Strike FaultRoom::strike_of(const Question& question) const {
  control::Strike strike;
  strike.fault = static_cast<int64_t>(question.fault);
  strike.times = config_.plan->faults[question.fault].times;
  strike.where = where(question);
  strike.step = question.progress.step.value_or(-1);
  strike.training_epoch = question.progress.training_epoch.value_or(-1);
  return strike;
}

std::string FaultRoom::where(const Question& question) const {
  std::string text = question.local_rank
                         ? "rank " + std::to_string(here_->base_rank + *question.local_rank)
                         : "node " + std::to_string(here_->node);
  text += " in round " + std::to_string(question.round);
  const faults::Progress& at = question.progress;
  if (at.training_epoch) text += ", training epoch " + std::to_string(*at.training_epoch);
  if (at.step) text += ", step " + std::to_string(*at.step);
  return text;
}

// ---------------------------------------------------------------- workers

void FaultRoom::on_started(const control::World& world, int workers) {
  here_ = faults::Here{world.round.value, world.restart_count, world.group_rank,
                       world.group_size,  world.base_rank,     workers,
                       world.world_size};
  is_running_ = true;
  account_.on_started(boot_now(), world.round.value, world.restart_count);
  schedule_.on_started(boot_now(), *here_);
  arm();
}

void FaultRoom::on_stopped() {
  is_running_ = false;
  schedule_.on_stopped();
  lasting_.clear();  // their processes are gone
  arm();
}

// What a worker says may be anything: the fault must be one that waits for a place.
void FaultRoom::on_asked(int local_rank, const channel::Strike& question,
                         std::function<void(bool)> answer) {
  const size_t fault = question.fault;
  const bool is_sensible = is_running_ && fault < config_.plan->faults.size() &&
                           config_.plan->faults[fault].is_at_place();
  if (!is_sensible) return answer(false);
  const faults::Progress progress{known(question.step), known(question.training_epoch)};
  ask({fault, local_rank, here_->round, progress, std::move(answer)});
}

void FaultRoom::on_began(const channel::Began& began) {
  account_.on_began({known(began.step), known(began.training_epoch)});
}

// ---------------------------------------------------------------- what strikes

void FaultRoom::on_time() {
  end_lasting(boot_now());
  for (const faults::Due& due : schedule_.take_due(boot_now())) {
    Question question{due.fault, std::nullopt, here_->round, {}, nullptr};
    if (due.rank) {
      question.local_rank = static_cast<int>(*due.rank - here_->base_rank);
      question.progress.step = doors_.step_of(*question.local_rank);
    }
    ask(std::move(question));
  }
  arm();
}

void FaultRoom::arm() {
  Instant next = schedule_.next_deadline();
  for (const Lasting& one : lasting_) next = std::min(next, one.until);
  timer_.set(next.is_never() ? next : std::max(next, boot_now()));
}

void FaultRoom::carry_out(const Question& question) {
  const faults::Fault& fault = config_.plan->faults[question.fault];
  log::warning("fault " + std::to_string(question.fault + 1) + " strikes " + where(question) +
               ": " + faults::describe(fault));
  if (fault.what == faults::What::KillAgent) {
    ::kill(::getpid(), SIGKILL);
  } else if (fault.what == faults::What::DropCoordinator) {
    doors_.drop_line();
  } else if (const auto pid = doors_.pid_of(question.local_rank.value_or(-1));
             pid && is_running_ && here_->round == question.round) {
    strike_worker(question, *pid);
  } else {
    log::warning("fault " + std::to_string(question.fault + 1) +
                 " came too late: " + "its worker had ended");
  }
}

void FaultRoom::strike_worker(const Question& question, int pid) {
  const faults::Fault& fault = config_.plan->faults[question.fault];
  switch (fault.what) {
    case faults::What::Kill:
      ::kill(pid, SIGKILL);
      return;
    case faults::What::Stop:
      ::kill(pid, SIGSTOP);
      if (fault.lasts > Duration{}) {
        lasting_.push_back({boot_now() + fault.lasts, pid, fault.what});
        arm();
      }
      return;
    case faults::What::DiskFull:
      return fill_disk(pid, fault.lasts);
    default:
      return;  // the program does it itself
  }
}

// No file of the process may grow any more; its pipes and what it has written stay.
void FaultRoom::fill_disk(int pid, Duration lasts) {
  rlimit before{};
  if (::prlimit(pid, RLIMIT_FSIZE, nullptr, &before) != 0) return;
  const rlimit full{0, before.rlim_max};
  ::prlimit(pid, RLIMIT_FSIZE, &full, nullptr);
  if (lasts == Duration{}) return;
  lasting_.push_back({boot_now() + lasts, pid, faults::What::DiskFull, before.rlim_cur});
  arm();
}

void FaultRoom::end_lasting(Instant now) {
  for (auto one = lasting_.begin(); one != lasting_.end();) {
    if (one->until > now) {
      ++one;
      continue;
    }
    bool is_alive = false;  // a worker that has ended is reaped, and its number another's
    for (int rank = 0; here_ && rank < here_->workers; ++rank) {
      is_alive = is_alive || doors_.pid_of(rank) == one->pid;
    }
    rlimit limit{};
    if (is_alive && one->what == faults::What::Stop) ::kill(one->pid, SIGCONT);
    if (is_alive && one->what == faults::What::DiskFull &&
        ::prlimit(one->pid, RLIMIT_FSIZE, nullptr, &limit) == 0) {
      limit.rlim_cur = one->file_bytes;
      ::prlimit(one->pid, RLIMIT_FSIZE, &limit, nullptr);
    }
    one = lasting_.erase(one);
  }
}

// ---------------------------------------------------------------- the end

int FaultRoom::finish(int exit_code) {
  const std::string hash = final_hash();
  const std::vector<faults::Verdict> verdicts = account_.judge(exit_code, hash);
  log::plain(faults::account_text(account_, verdicts));
  const double seconds = to_seconds(boot_now() - began_at_);
  bool is_written = write(config_.junit, faults::junit(account_, verdicts, seconds));
  const faults::Summary summary = faults::summarize(account_, verdicts, hash);
  is_written = write(config_.account_file, faults::encode(summary)) && is_written;
  if (exit_code >= kSignalBase || exit_code == kNodeUnusable || !config_.plan->expect)
    return exit_code;
  if (!is_written) return kExpectationsFailed;
  return summary.is_held ? kSuccess : kExpectationsFailed;
}

std::string FaultRoom::final_hash() const {
  const auto& expect = config_.plan->expect;
  if (!expect || !expect->final_hash) return "";
  std::ifstream in(expect->final_hash->file, std::ios::binary);
  if (!in) return "";
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return in.bad() ? "" : archive::crc32_text(archive::crc32(archive::bytes_of(bytes)));
}

bool FaultRoom::write(const std::string& path, const std::string& text) const {
  if (path.empty()) return true;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) log::error("the account of the faults could not be written to '" + path + "'");
  return static_cast<bool>(out);
}

}  // namespace cpprun
