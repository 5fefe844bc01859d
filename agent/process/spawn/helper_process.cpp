#include "agent/process/spawn/helper_process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/spawn/spawn.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/reap.hpp"

namespace cpprun {
namespace {

using namespace std::chrono_literals;

constexpr Duration kKillTimeout = 1s;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// The agent's own environment, but for those.
std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  for (char** entry = __environ; entry != nullptr && *entry != nullptr; ++entry) {
    const auto has_name = [&](const auto& given) { return name_of(given) == name_of(*entry); };
    if (std::ranges::none_of(variables, has_name)) all.emplace_back(*entry);
  }
  return all;
}

}  // namespace

Result<HelperProcess> HelperProcess::start(const std::vector<std::string>& argv,
                                           const std::vector<std::string>& variables) {
  const std::vector<std::string> environment = environment_with(variables);
  Result<std::string> program = find_program(argv.front(), environment);
  if (!program) return program.error();
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.is_open()) return system_error("/dev/null", errno);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return system_error("no pipe", errno);
  UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  SpawnPlan plan{.program = *program, .argv = argv, .environment = environment};
  plan.in = null.get();
  plan.out = plan.err = to.get();
  StartTicket ticket;
  plan.ticket = &ticket;
  const HelperStart start(ticket);
  Result<Spawned> spawned = SpawnContext().spawn(plan);
  if (!spawned) return spawned.error();
  register_helper(spawned->pid);
  return HelperProcess(spawned->pid, std::move(spawned->pidfd), std::move(from));
}

bool HelperProcess::await_end(Instant until) const {
  pollfd watched{pidfd_.get(), POLLIN, 0};
  for (Duration left = until - boot_now(); left > Duration{}; left = until - boot_now()) {
    if (::poll(&watched, 1, static_cast<int>(left / 1ms) + 1) > 0) return true;
  }
  return false;
}

std::optional<int> HelperProcess::end() {
  if (pid_ == 0) return std::nullopt;
  const int pid = std::exchange(pid_, 0);
  ::kill(-pid, SIGKILL);
  // One that SIGKILL does not end stays registered: it is no orphan of a worker.
  if (!await_end(boot_now() + kKillTimeout)) return std::nullopt;
  const int status = reap(pid);
  unregister_helper(pid);
  return status;
}

std::string output_of(const std::vector<std::string>& argv, Duration takes, size_t most) {
  const Result<HelperProcess> program = HelperProcess::start(argv);
  std::string text;
  if (program) read_until(program->output(), boot_now() + takes, most, text);
  return text;
}

}  // namespace cpprun
