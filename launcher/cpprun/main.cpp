// cpprun: torchrun's command line in C++.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "agent/daemon/agent_daemon.hpp"
#include "common/exit_code.hpp"
#include "common/limits/election.hpp"
#include "common/limits/log.hpp"
#include "common/limits/tls.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/signal_mask.hpp"
#include "common/text.hpp"
#include "common/thread/process_limits.hpp"
#include "common/tls/job_tls.hpp"
#include "launcher/cpprun/elected_coordinator.hpp"
#include "launcher/cpprun/embedded_coordinator.hpp"
#include "launcher/cpprun/idle_wait.hpp"
#include "launcher/cpprun/job_record.hpp"
#include "launcher/cpprun/progress_folder.hpp"
#include "launcher/cpprun/report_file.hpp"
#include "launcher/cpprun/slurm_requeue.hpp"
#include "launcher/cpprun/slurm_secret.hpp"
#include "launcher/cpprun/torchrun_name.hpp"
#include "launcher/doctor/checks.hpp"
#include "launcher/doctor/probe.hpp"
#include "launcher/options/options.hpp"
#include "launcher/ssh/relay_server.hpp"
#include "launcher/ssh/ssh_launcher.hpp"
#include "launcher/ssh/stdin_control.hpp"

namespace {

using namespace cpprun;  // NOLINT: the program's own namespace, in its main file

int fail(const Error& error) {
  log::failure(error.text);
  return exit_code(error);
}

// glibc maps a heap for each thread that allocates, so that threads which allocate all the time
// don't wait for each other. Ours allocate in turn, and each heap costs a start its system calls.
void share_one_heap() { ::mallopt(M_ARENA_MAX, 1); }

// Asio throws where the system has no descriptors, memory or threads left for a loop. Destructors
// stop what was started.
template <class Run>
int run_guarded(Run run) {
  try {
    return run();
  } catch (const std::system_error& error) {
    const bool is_limit = error.code() == std::errc::resource_unavailable_try_again;
    log::error(std::string("the system refused what is needed to run: ") + error.what() +
               (is_limit ? "; " + process_limits_text() : ""));
  } catch (const std::bad_alloc&) {
    log::error("out of memory");
  }
  return kFailure;
}

// Some code can only throw when descriptors run out, so the minimum is checked before anything is
// opened. Pipes and log files need more; the agent reports their lack when it occurs.
Status check_descriptors(int workers) {
  constexpr rlim_t kOwn = 32;  // standard streams, loops, server, reaper process, log
  constexpr rlim_t kMostPerWorker = 5;
  const rlim_t count = static_cast<rlim_t>(workers);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kOwn + count) return {};
  const std::string enough = std::to_string(kOwn + count * kMostPerWorker);
  return Error{ErrorKind::System, "the limit on open files is " + std::to_string(limit.rlim_cur) +
                                      ", and " + text::count(static_cast<size_t>(count), "worker") +
                                      (count == 1 ? " needs" : " need") + " up to " + enough +
                                      "; raise it with ulimit -n " + enough};
}

// Problems make jobs fail: warn. The rest is logged at INFO, so that a good run is silent.
void report_preflight_findings(int workers) {
  for (const doctor::Finding& finding :
       doctor::preflight_findings(doctor::preflight_facts(workers))) {
    const std::string text = finding.text + " (" + finding.cure + ")";
    finding.level == doctor::Level::Problem ? log::warning(text) : log::info(text);
  }
}

// How long this process may serve other agents after its own has ended; nothing: without limit.
// After SIGTERM there is time at least to notify them that they need another coordinator.
std::optional<Duration> may_stay(const AgentDaemon& agent, int code) {
  const std::optional<Duration> most = agent.may_stay();
  const bool is_urgent = code > kSignalBase && code != kSignalBase + SIGTERM;
  return most && !is_urgent ? std::max(*most, limits::kLeaderLeaveTimeout) : most;
}

// With the etcd backend this process or another one leads.
int launch_elected(const RendezvousConfig& rendezvous, std::unique_ptr<AgentDaemon> agent,
                   StartTimes times, std::vector<std::string>& excluded) {
  Result<uint16_t> port = agent->keep_port();
  if (!port) return fail(port.error());
  auto host = ElectedCoordinator::start(rendezvous, agent->incarnation(), *port,
                                        agent->election_callbacks());
  if (!host) return fail(host.error());
  times.listening = boot_now();
  agent->set_start_times(times);
  const int code = agent->run_elected((*host)->arbiter());
  excluded = agent->excluded_hosts();
  IdleWait stay(may_stay(*agent, code));
  agent.reset();  // restores the default actions of the other signals
  (*host)->leave(stay);
  if (stay.is_asked()) log::finish(limits::kLogFlushTimeout);
  return code;
}

// The result owns the secret's file until the end of the launcher.
Result<SlurmSecret> obtain_step_secret(AgentConfig& config) {
  RendezvousConfig& rendezvous = config.rendezvous;
  const Duration wait = std::min(limits::kSecretFileWait, rendezvous.conf.join_timeout);
  Result<SlurmSecret> made =
      SlurmSecret::obtain(rendezvous.tls.step_secret_file, config.cluster.is_first_node, wait);
  if (made && made->secret()) rendezvous.tls.secret = made->secret();
  return made;
}

// OpenSSL is loaded where the job may span nodes: a job of one node keeps to its own process.
Status load_tls(RendezvousConfig& rendezvous) {
  const TlsConfig& tls = rendezvous.tls;
  const bool spans_nodes = rendezvous.max_nodes > 1 || rendezvous.backend == Backend::Etcd;
  TlsCredentials credentials{tls.secret};
  credentials.certificate.path = tls.cert_file;
  credentials.key.path = tls.key_file;
  credentials.ca.path = tls.ca_file;
  if (!spans_nodes || !credentials.are_given()) return {};
  auto loaded = JobTls::load(std::move(credentials), rendezvous.run_id);
  if (!loaded) return loaded.error();
  rendezvous.job_tls = std::move(*loaded);
  return {};
}

// The agent of the first node prints one line about what was inferred.
void report_options(const Launch& launch_options) {
  for (const std::string& warning : launch_options.warnings) log::warning(warning);
  for (const std::string& note : launch_options.notes) log::note(note);
  if (launch_options.inferred.empty()) return;
  if (!launch_options.config.cluster.is_first_node) return log::info(launch_options.inferred);
  log::status(launch_options.inferred);
}

// `control`: of an agent that --hosts has started; else null. `excluded`: becomes the hosts that
// the job has excluded.
int launch(Launch launch_options, StartTimes times, ssh::StdinControl* control,
           std::vector<std::string>& excluded) {
  if (Status ok = check_descriptors(launch_options.config.workers.nproc); !ok)
    return fail(ok.error());
  report_options(launch_options);
  if (launch_options.is_surplus) return kSuccess;
  const Result<std::string> report = check_report_file(launch_options.report);
  if (!report) return fail(report.error());
  Result<SlurmSecret> step_secret = obtain_step_secret(launch_options.config);
  if (!step_secret) return fail(step_secret.error());
  if (Status ok = load_tls(launch_options.config.rendezvous); !ok) return fail(ok.error());
  Result<ProgressFolder> progress =
      launch_options.counts_steps ? ProgressFolder::make(launch_options.config) : ProgressFolder();
  if (!progress) return fail(progress.error());
  Result<std::unique_ptr<AgentDaemon>> agent = AgentDaemon::make(launch_options.config);
  if (!agent) return fail(agent.error());
  report_at_end(**agent, *report);
  times.prepared = boot_now();
  // The reaper process is forked, so there may be threads.
  if (control != nullptr) {
    if (Status ok = control->watch(); !ok) return fail(ok.error());
  }
  const RendezvousConfig& rendezvous = launch_options.config.rendezvous;
  if (has_job_succeeded(launch_options.config)) {
    log::status("job " + rendezvous.run_id + " has succeeded without this pod, which ends with 0");
    return kSuccess;
  }
  if (rendezvous.backend == Backend::Etcd)
    return launch_elected(rendezvous, std::move(*agent), times, excluded);
  Result<std::unique_ptr<EmbeddedCoordinator>> host =
      EmbeddedCoordinator::start(rendezvous, (*agent)->incarnation());
  if (!host) return fail(host.error());
  times.listening = boot_now();
  // While the server's thread comes up.
  report_preflight_findings(launch_options.config.workers.nproc);
  (*agent)->set_start_times(times);
  if (!*host && EmbeddedCoordinator::may_start_later(rendezvous)) {
    (*agent)->may_host([&](const std::vector<std::string>& addresses) -> std::optional<Endpoint> {
      *host = EmbeddedCoordinator::start_if_free(rendezvous, (*agent)->incarnation(), addresses);
      return *host ? std::optional((*host)->endpoint()) : std::nullopt;
    });
  }
  if (rendezvous.max_nodes == 1) {
    (*agent)->may_connect_in_process(
        [&](const Endpoint& at) { return *host ? (*host)->connect(at) : UniqueFd(); });
  }
  std::unique_ptr<EmbeddedCoordinator> taken_over;  // while our agent leads as the standby
  if (!*host && rendezvous.max_nodes > 1 && rendezvous.backend != Backend::Static) {
    (*agent)->may_lead([&](Term term, const control::Standby& standby,
                           const std::string& job_key) -> Result<Endpoint> {
      auto made = EmbeddedCoordinator::take_over(rendezvous, term, standby, job_key);
      if (!made) return made.error();
      taken_over = std::move(*made);
      return taken_over->endpoint();
    });
  }
  const int code =
      (*agent)->run(*host ? (*host)->endpoint() : rendezvous.endpoint, *host != nullptr);
  excluded = (*agent)->excluded_hosts();
  if (code == kSuccess) record_success(launch_options.config);
  const std::optional<Duration> most = may_stay(**agent, code);
  IdleWait stay(most);
  agent->reset();  // restores the default actions of the other signals
  // Other agents may still need the coordinator in this process.
  const bool has_time = !most || *most > Duration{};
  if (*host && has_time) (*host)->wait_until_idle(stay);
  if (taken_over && has_time) taken_over->wait_until_idle(stay);
  if (stay.is_asked()) log::finish(limits::kLogFlushTimeout);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  StartTimes times;
  times.main_at = boot_now();
  times.exec = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  share_one_heap();
  unblock_signals();
  // First of all, so that it is in no copy of the environment.
  Result<std::shared_ptr<const JobSecret>> secret = take_secret_variable();
  if (!secret) return fail(secret.error());
  std::vector<std::string> args(argv + 1, argv + argc);
  if (ssh::RelayServer::is_asked_for(args))
    return run_guarded([] { return ssh::run_relay(real_environment().variables); });
  const bool is_torchrun = is_called_torchrun(argv[0]);
  if (is_torchrun) args = with_torchrun_defaults(args);
  std::unique_ptr<ssh::StdinControl> control;
  if (ssh::StdinControl::is_asked_for(args)) {
    auto taken = ssh::StdinControl::take();
    if (!taken) return fail(taken.error());
    control = std::move(*taken);
    if (control->secret()) secret = control->secret();
  }
  Environment environment = real_environment();
  environment.secret = std::move(*secret);
  log::set_level(environment.text("LOGLEVEL"));
  Result<OptionsResult> options_result = read_options(args, environment);
  if (!options_result) return fail(options_result.error());
  if (const auto* shown = std::get_if<TextToShow>(&*options_result)) {
    std::fputs(shown->text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? kSuccess : kFailure;
  }
  if (const auto* over_ssh = std::get_if<LaunchOverSsh>(&*options_result))
    return run_guarded([&] { return ssh::run_over_ssh(*over_ssh, environment); });
  if (control) {
    const Instant ready_at = boot_now();
    if (!control->wait_for_begin()) return kFailure;
    times.main_at = times.main_at + (boot_now() - ready_at);  // --timing: not this agent's time
  }
  times.options = boot_now();
  Launch launch_options = std::get<Launch>(std::move(*options_result));
  const ConsoleOptions& console = launch_options.console;
  log::set_color(color_mode(console.color));
  if (!console.log_level.empty()) log::set_level(console.log_level);
  const auto cluster = launch_options.config.cluster;
  std::vector<std::string> excluded;
  const int code = run_guarded(
      [&] { return launch(std::move(launch_options), times, control.get(), excluded); });
  requeue_if_stopped(cluster, code, excluded);
  return is_torchrun ? torchrun_exit_code(code) : code;
}
