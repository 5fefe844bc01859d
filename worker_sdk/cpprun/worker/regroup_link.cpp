#include "cpprun/worker/regroup_link.hpp"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <system_error>
#include <utility>

#include "common/text.hpp"
#include "common/thread/blocked_signals.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/internal/fatal_handlers.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::worker {
namespace {

constexpr off_t kVariablesMost = 4 << 20;  // bytes; the environment of a process is smaller
constexpr size_t kDescriptors = 3;
// A signal handler of the program, which asks to stop, does not wake a waiting thread.
constexpr std::chrono::milliseconds kStopLook{200};

// "NAME=value" sets a variable, "NAME" removes it.
void change_variable(const std::string& entry) {
  const size_t equals = entry.find('=');
  const std::string name = entry.substr(0, equals);
  if (name.empty()) return;
  if (equals == std::string::npos) {
    ::unsetenv(name.c_str());
  } else {
    ::setenv(name.c_str(), entry.c_str() + equals + 1, 1);
  }
}

Status change_variables(int memory) {
  struct stat info {};
  if (::fstat(memory, &info) != 0) return system_error("the variables of the round", errno);
  if (info.st_size > kVariablesMost) {
    return Error{ErrorKind::Protocol, "the variables of the round have " +
                                          std::to_string(info.st_size) + " bytes, more than " +
                                          std::to_string(kVariablesMost)};
  }
  std::string all(static_cast<size_t>(info.st_size), '\0');
  if (::pread(memory, all.data(), all.size(), 0) != static_cast<ssize_t>(all.size())) {
    return system_error("the variables of the round", errno);
  }
  for (const std::string& entry : text::split(all, '\0')) change_variable(entry);
  return {};
}

Status change_output(int out, int err) {
  std::cout.flush();
  std::cerr.flush();
  ::fflush(nullptr);
  if (::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) {
    return system_error("the output of the round", errno);
  }
  return {};
}

Status enter(const std::vector<UniqueFd>& round) {
  if (Status changed = change_variables(round[0].get()); !changed) return changed;
  if (Status changed = change_output(round[1].get(), round[2].get()); !changed) return changed;
  read_environment_again();
  if (!environment()) return environment().error();
  change_error_file(environment()->error_file);
  set_reported_rank(environment()->rank);
  begin_round();
  return {};
}

}  // namespace

std::unique_ptr<RegroupLink> RegroupLink::open(std::function<void()> wake) {
  if (!has_agent()) return nullptr;
  AgentSocket socket = AgentSocket::connect(environment_or_default().agent);
  if (!socket.has_elastic()) return nullptr;
  try {
    return std::unique_ptr<RegroupLink>(new RegroupLink(std::move(socket), std::move(wake)));
  } catch (const std::system_error&) {
    return nullptr;  // no thread is left: this worker is restarted like any other
  }
}

RegroupLink::RegroupLink(AgentSocket socket, std::function<void()> wake)
    : socket_(std::make_unique<AgentSocket>(std::move(socket))), wake_(std::move(wake)) {
  const BlockedSignals blocked;  // the program's handlers run on its own threads
  thread_ = std::thread([this] { read(); });
  socket_->send(channel::Elastic{});
}

RegroupLink::~RegroupLink() {
  socket_->shut_down();
  thread_.join();
}

void RegroupLink::read() {
  while (auto answer = socket_->receive(Deadline::max())) {
    if (std::holds_alternative<channel::Regroup>(answer->message)) {
      {
        const std::lock_guard lock(mutex_);
        is_requested_.store(true);
      }
      changed_.notify_all();
      wake_();
    } else if (std::holds_alternative<channel::NewRound>(answer->message) &&
               answer->descriptors.size() == kDescriptors) {
      const std::lock_guard lock(mutex_);
      is_requested_.store(false);
      next_round_ = std::move(answer->descriptors);
      changed_.notify_all();
    }
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

bool RegroupLink::wait_for_request(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, after(limit), [this] { return is_requested_.load() || has_ended_; });
  return is_requested_.load();
}

Status RegroupLink::enter_next_round(int64_t completed) {
  socket_->send(channel::Released{completed > 0 ? completed : -1});
  std::unique_lock lock(mutex_);
  const auto has_come = [this] { return next_round_.has_value() || has_ended_; };
  while (!changed_.wait_for(lock, kStopLook, has_come)) {
    if (should_stop()) return Error{ErrorKind::Refused, "this worker is asked to stop"};
  }
  if (!next_round_) return Error{ErrorKind::Network, "the agent has gone"};
  const std::vector<UniqueFd> round = *std::exchange(next_round_, std::nullopt);
  lock.unlock();
  return enter(round);
}

}  // namespace cpprun::worker
