#include "agent/process/cleanup/orphan_sweep.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/proc_files.hpp"
#include "common/check.hpp"
#include "common/limits/agent.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

bool reap_if_dead(int pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 &&
         info.si_pid == pid;
}

// A worker that the preload process has forked stays in its session until the agent has admitted
// it.
bool is_of_helper(int pid) {
  const auto stat = read_stat(pid);
  return stat && is_helper(stat->session);
}

void send_signal(int target, bool is_kill) {
  ::kill(target, is_kill ? SIGKILL : SIGTERM);
  if (!is_kill) ::kill(target, SIGCONT);
}

}  // namespace

OrphanSweep::OrphanSweep(const std::string& token, Callbacks callbacks)
    : is_starting_(std::move(callbacks.is_starting)),
      environments_(token, std::move(callbacks.on_news)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  for (int pid : own_children()) {
    if (!is_helper(pid)) foreign_.insert(pid);
  }
  has_foreign_ = !foreign_.empty();
}

void OrphanSweep::begin_round() {
  is_hard_ = false;
  if (!alive_.empty()) return;  // processes of their dead siblings may still be ending
  dead_.clear();
  deadlines_.clear();
}

void OrphanSweep::on_worker_started(int pid, LocalRank rank) {
  dead_.erase(pid);  // an earlier process of this number
  alive_.emplace(pid, rank);
}

void OrphanSweep::on_worker_ended(int pid, Instant now) {
  const auto found = alive_.find(pid);
  CPPRUN_CHECK(found != alive_.end());
  dead_.insert(*found);
  alive_.erase(found);
  last_deadline_ = now + limits::kSweepGrace;
  deadlines_[pid] = last_deadline_;
  send_signal(-pid, is_hard_);
}

void OrphanSweep::look(Instant now, Cgroup* cgroup) {
  const Unblocking procfs("lists of children and `stat` take no lock of a process's memory");
  now_ = now;
  take_origins();
  // The agent inherits the children of a process that it reaps here after it has read the list:
  // only a pass that reaps none has seen all children.
  while (scan_once(now)) {
  }
  environments_.ask(std::exchange(asked_, {}));
  const bool is_time = is_hard_ || now >= last_deadline_;
  if (cgroup != nullptr && alive_.empty() && is_time && !is_clean()) cgroup->kill();
}

bool OrphanSweep::scan_once(Instant now) {
  bool is_any_reaped = false;
  for (auto& [pid, orphan] : orphans_) orphan.is_seen = false;
  const std::vector<int> children = own_children();
  // Asked after the list is read, and before each child's pid is looked up: otherwise a helper
  // could get its name in between.
  const bool is_any_unnamed = HelperStart::is_any_unnamed();
  is_unsure_ = false;
  for (int pid : children) {
    if (alive_.contains(pid) || is_helper(pid) || foreign_.contains(pid)) continue;
    if (is_starting_(pid)) continue;
    if (is_any_unnamed && !orphans_.contains(pid)) {
      is_unsure_ = true;
      continue;
    }
    if (reap_if_dead(pid)) {
      is_any_reaped = true;
      continue;
    }
    auto found = orphans_.find(pid);
    if (found == orphans_.end() && is_of_helper(pid)) continue;
    if (found == orphans_.end()) found = orphans_.emplace(pid, identify(pid)).first;
    Orphan& orphan = found->second;
    const bool is_asked = orphan.asked_at != Instant{};
    if (!orphan.is_known && !is_asked && orphan.signal_sent == SignalSent::Nothing) {
      orphan = identify(pid);
    }
    found->second.is_seen = true;
    visit(pid, found->second, now);
  }
  std::erase_if(orphans_, [](const auto& item) { return !item.second.is_seen; });
  return is_any_reaped;
}

OrphanSweep::Orphan OrphanSweep::identify(int pid) {
  Orphan orphan;
  const auto stat = read_stat(pid);
  if (stat) {
    for (int leader : {stat->session, stat->group}) {
      if (alive_.contains(leader) || dead_.contains(leader)) {
        orphan.worker = leader;
        return orphan;
      }
    }
  }
  orphan.is_known = !stat;
  orphan.is_foreign = has_foreign_;  // until its environment shows that it is ours
  // A process in state D may hold the lock of its memory for ever, which would block the reader.
  if (!stat || stat->state == 'D') return orphan;
  orphan.asked_at = now_;
  asked_.push_back(pid);
  return orphan;
}

void OrphanSweep::take_origins() {
  for (const EnvironmentReader::Answer& answer : environments_.take()) {
    const auto found = orphans_.find(answer.pid);
    if (found == orphans_.end() || found->second.is_known) continue;
    const Origin& origin = answer.origin;
    Orphan& orphan = found->second;
    orphan.is_known = true;
    orphan.is_foreign = has_foreign_ && !origin.is_ours;
    if (!origin.is_ours || origin.is_nested || !origin.local_rank) continue;
    for (const auto* workers : {&alive_, &dead_}) {
      for (const auto& [worker, rank] : *workers) {
        if (rank.value == *origin.local_rank) orphan.worker = worker;
      }
    }
  }
}

// The round does not end before it is known whose this process is, unless that takes too long.
bool OrphanSweep::is_awaited(const Orphan& orphan) const {
  const bool is_asked = orphan.asked_at != Instant{};
  return orphan.is_foreign && !orphan.is_known && is_asked &&
         now_ < orphan.asked_at + limits::kStuckReadTimeout;
}

bool OrphanSweep::is_due(const Orphan& orphan) const {
  if (orphan.is_foreign) return false;
  return alive_.empty() || dead_.contains(orphan.worker);
}

Instant OrphanSweep::deadline_of(const Orphan& orphan) const {
  const auto found = deadlines_.find(orphan.worker);
  return found == deadlines_.end() ? last_deadline_ : found->second;
}

void OrphanSweep::visit(int pid, Orphan& orphan, Instant now) {
  if (!is_due(orphan)) return;
  const bool is_kill = is_hard_ || now >= deadline_of(orphan);
  const SignalSent wanted = is_kill ? SignalSent::Killed : SignalSent::Terminate;
  if (orphan.signal_sent >= wanted) return;
  orphan.signal_sent = wanted;
  orphan.signalled_at = now;
  // The group's number cannot be reused: this child, a living member, holds it.
  const auto stat = read_stat(pid);
  const bool has_own_group = stat && (stat->group == pid || dead_.contains(stat->group));
  if (has_own_group) send_signal(-stat->group, is_kill);
  send_signal(pid, is_kill);
}

Instant OrphanSweep::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [pid, orphan] : orphans_) {
    if (is_due(orphan) && orphan.signal_sent == SignalSent::Terminate)
      next = std::min(next, deadline_of(orphan));
    if (is_awaited(orphan)) next = std::min(next, orphan.asked_at + limits::kStuckReadTimeout);
  }
  if (is_unsure_) next = std::min(next, now_ + limits::kHelperNameInterval);
  return next;
}

bool OrphanSweep::is_clean() const {
  if (is_unsure_) return false;
  return std::ranges::none_of(orphans_, [this](const auto& item) {
    return is_due(item.second) || is_awaited(item.second);
  });
}

std::vector<OrphanSweep::Unended> OrphanSweep::unended() const {
  std::vector<Unended> all;
  for (const auto& [pid, orphan] : orphans_) {
    if (!is_due(orphan) || orphan.signal_sent != SignalSent::Killed) continue;
    Unended& one = all.emplace_back(Unended{pid, std::nullopt, orphan.signalled_at});
    if (const auto from = dead_.find(orphan.worker); from != dead_.end()) one.worker = from->second;
  }
  return all;
}

std::optional<Instant> OrphanSweep::first_kill() const {
  std::optional<Instant> first;
  for (const Unended& one : unended())
    first = std::min(first.value_or(one.killed_at), one.killed_at);
  return first;
}

}  // namespace cpprun
