// cpprun: what people type instead of torchrun. Options in, exit code out.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "agent/daemon/daemon.hpp"
#include "common/log/log.hpp"
#include "launcher/options/options.hpp"
#include "launcher/rendezvous_host.hpp"

namespace {

using namespace cpprun;  // NOLINT: the program's own namespace, in its main file

constexpr int kSignalBase = 128;  // exit codes from here on: ended by a signal to us

int fail(const Error& error) {
  log::plain(shown_error(error));
  return exit_code(error);
}

int launch(const Launch& asked) {
  for (const std::string& warning : asked.warnings) log::warning(warning);
  Result<std::unique_ptr<AgentDaemon>> agent = AgentDaemon::make(asked.config);
  if (!agent) return fail(agent.error());
  const RendezvousConfig& rendezvous = asked.config.rendezvous;
  Result<std::unique_ptr<RendezvousHost>> host =
      RendezvousHost::start(rendezvous, (*agent)->incarnation());
  if (!host) return fail(host.error());
  int code = (*agent)->run(*host ? (*host)->endpoint() : rendezvous.endpoint, *host != nullptr);
  // Others may still need the coordinator in this process; whoever was told to go by a signal goes.
  if (*host && code < kSignalBase) (*host)->wait_until_idle();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Environment environment = real_environment();
  log::set_level(log::parse_level(environment.text("LOGLEVEL")));
  std::vector<std::string> args(argv + 1, argv + argc);
  Result<Asked> asked = read_options(args, environment);
  if (!asked) return fail(asked.error());
  if (const auto* shown = std::get_if<Shown>(&*asked)) {
    std::fputs(shown->text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  return launch(std::get<Launch>(*asked));
}
