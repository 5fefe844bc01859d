#include "launcher/ssh/ssh_launcher.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <utility>

#include "agent/process/streams/stream_fds.hpp"
#include "common/endpoint.hpp"
#include "common/exit_code.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/ssh.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/end_signals.hpp"
#include "common/machine/files.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/reap.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/ssh/child_process.hpp"
#include "launcher/ssh/plan/control_lines.hpp"
#include "launcher/ssh/plan/start_failure.hpp"
#include "launcher/ssh/plan/tree.hpp"

namespace cpprun::ssh {
namespace {

using State = RemoteAgent::State;

// Each host needs four descriptors, and the usual soft limit is 1,024.
Status raise_descriptor_limit(size_t hosts) {
  constexpr rlim_t kOwn = 64;
  constexpr rlim_t kPerHost = 4;
  const rlim_t needed = kOwn + kPerHost * hosts;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return {};
  return Error{ErrorKind::System, "the limit on open files is " + std::to_string(limit.rlim_max) +
                                      ", and " + text::count(hosts, "host") + " need " +
                                      std::to_string(needed) + "\nhint: raise it with ulimit -Hn"};
}

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<size_t>(size)) : "cpprun";
}

std::string working_directory() {
  std::array<char, PATH_MAX> path{};
  return ::getcwd(path.data(), path.size()) == nullptr ? "" : path.data();
}

Result<Surroundings> look_around() {
  constexpr size_t kIdDigits = 12;
  Surroundings here;
  here.directory = working_directory();
  if (here.directory.empty()) return system_error("the working directory can't be read", errno);
  here.program = own_program();
  here.host_name = own_host_name();
  here.fresh_id = random_hex().substr(0, kIdDigits);
  here.fresh_secret = random_hex(2);  // 32 bytes
  const auto bytes = random_bytes();
  here.fresh_port = static_cast<uint16_t>(limits::kChosenPortFirst +
                                          (bytes[0] * 256 + bytes[1]) % limits::kChosenPorts);
  return here;
}

std::string join_names(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.target);
  return text::join(names, ", ");
}

constexpr const char* kElasticHint =
    "\nhint: with --nnodes=MIN:MAX it would start without hosts that cannot be reached";

}  // namespace

Result<std::unique_ptr<SshLauncher>> SshLauncher::make(LaunchPlan plan,
                                                       std::vector<std::string> environment) {
  fill_standard_streams();
  if (Status ok = raise_descriptor_limit(plan.hosts.size()); !ok) return ok.error();
  std::signal(SIGPIPE, SIG_IGN);
  Result<UniqueFd> signals = open_end_signals();
  if (!signals) return signals.error();
  return std::unique_ptr<SshLauncher>(
      new SshLauncher(std::move(plan), std::move(environment), std::move(*signals)));
}

SshLauncher::SshLauncher(LaunchPlan plan, std::vector<std::string> environment, UniqueFd signals)
    : plan_(std::move(plan)),
      environment_(std::move(environment)),
      signals_(std::move(signals)),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO) {
  std::string secret;
  if (plan_.secret) {
    const auto bytes = plan_.secret->bytes();
    secret.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  header_ = control_header(secret, plan_.variables);
  ::explicit_bzero(secret.data(), secret.size());
}

SshLauncher::~SshLauncher() { ::explicit_bzero(header_.data(), header_.size()); }

int SshLauncher::run() {
  const std::optional<int> ended = start_all();
  const int code = ended ? *ended : supervise();
  finish_output();
  return code;
}

// ---------------------------------------------------------------- start

// Nothing: the job has begun.
std::optional<int> SshLauncher::start_all() {
  for (;;) {
    if (Status ok = prepare_attempt(); !ok) {
      print("error: ", ok.error().text);
      return kFailure;
    }
    while (!are_all_settled()) {
      start_some();
      if (!are_all_settled()) step(Instant::never());
      if (stop_signal_ == 0) continue;
      abandon();
      return stopped_code();
    }
    if (std::ranges::all_of(agents_, [](auto& a) { return a->state() == State::Ready; })) break;
    const bool may_continue = leave_failed_hosts_out();
    abandon();
    if (stop_signal_ != 0) return stopped_code();
    if (!may_continue) return kFailure;
  }
  is_running_ = true;
  for (size_t i = 0; i < agents_.size(); ++i) {
    const std::string& text = login_text(i);
    if (!text.empty()) print("warning: ", login_text_warning(agents_[i]->host(), text));
  }
  for (const auto& agent : agents_) {
    agent->begin();
  }
  returns_.resize(agents_.size());
  expect_left_out_hosts();
  const bool may_lose_hosts = plan_.min_nodes < static_cast<int>(plan_.hosts.size());
  if (!may_lose_hosts) ::explicit_bzero(header_.data(), header_.size());
  return std::nullopt;
}

// They are tried like lost hosts, and join with node ranks after the others.
void SshLauncher::expect_left_out_hosts() {
  if (plan_.is_static) return;
  for (Host& host : left_out_) {
    plan_.hosts.push_back(std::move(host));
    if (!add_agent(plan_.hosts.size() - 1)) {
      plan_.hosts.pop_back();
      continue;
    }
    parents_.emplace_back();
    Return& first = returns_.emplace_back();
    first.at = boot_now() + limits::kSshReturnFirst;
    first.was_left_out = true;
  }
}

// Of a job that has not begun: as an agent's, since SIGTERM loses nothing.
int SshLauncher::stopped_code() const {
  return stop_signal_ == SIGTERM ? kStoppedResumable : kSignalBase + stop_signal_;
}

Status SshLauncher::prepare_attempt() {
  agents_.clear();
  relays_.clear();
  commands_.clear();
  parents_ = tree_parents(plan_);
  endpoint_ = endpoint_at(plan_, plan_.hosts.front(), name_of_first());
  const Result<Endpoint> at = parse_endpoint(endpoint_, uint16_t{0});
  const bool is_chosen_here = plan_.endpoint.empty();
  if (is_chosen_here && plan_.hosts.size() > 1 && at && is_loopback(at->host)) {
    print("warning: ", "host " + plan_.hosts.front().target + " is " + at->host +
                           " to ssh, which is another machine on each host\nhint: if the nodes do "
                           "not find each other, give the address of the first one with "
                           "--rdzv-endpoint=HOST:PORT");
  }
  for (size_t rank = 0; rank < plan_.hosts.size(); ++rank) {
    if (Status ok = add_agent(rank); !ok) return ok;
  }
  return {};
}

Status SshLauncher::add_agent(size_t rank) {
  const Host& host = plan_.hosts[rank];
  std::vector<std::string> words =
      agent_arguments(plan_, host, rank, plan_.hosts.size(), endpoint_);
  const bool is_here = is_local(plan_, host);
  Command command;
  if (!is_here) {
    Result<std::vector<std::string>> over_ssh = ssh_command(plan_, host, words);
    if (!over_ssh) return over_ssh.error();
    command.over_ssh = std::move(*over_ssh);
  }
  words.insert(words.begin(), is_here ? plan_.own_program : plan_.program);
  command.direct = std::move(words);
  agents_.push_back(std::make_unique<RemoteAgent>(host.target, is_here));
  relays_.emplace_back();
  commands_.push_back(std::move(command));
  return {};
}

// Asks ssh for its settings, because the other hosts do not know the names in ~/.ssh/config.
// Another program than OpenSSH may not answer; then the name stands for itself.
std::string SshLauncher::name_of_first() {
  const Host& first = plan_.hosts.front();
  if (!plan_.endpoint.empty() || is_local(plan_, first)) return "";
  const std::vector<std::string> words = ssh_config_command(plan_, first);
  const Result<std::string> program = find_program(words.front(), environment_);
  int ends[2];
  if (!program || ::pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const UniqueFd empty(::open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnPlan plan{*program, words, environment_};
  plan.in = plan.err = empty.get();
  plan.out = theirs.get();
  const Result<Spawned> spawned = context_.spawn(plan);
  theirs.reset();
  if (!spawned) return "";
  std::string output;
  read_until(ours.get(), boot_now() + limits::kSshConfigTimeout, limits::kSshConfigBytes, output);
  ::kill(spawned->pid, SIGKILL);
  reap(spawned->pid);
  return host_name_of_config(output);
}

void SshLauncher::start_some() {
  const auto is_starting = [&](size_t i) { return agents_[i]->state() == State::Starting; };
  std::map<const Relay*, int> under_way;  // null: from this machine
  for (size_t i = 0; i < agents_.size(); ++i) under_way[relay_to(i)] += is_starting(i) ? 1 : 0;
  for (size_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i]->state() != State::Waiting || !is_way_known(i)) continue;
    int& count = under_way[relay_to(i)];
    if (count >= limits::kSshStartsAtOnce) continue;
    start(i);
    if (is_starting(i)) ++count;
  }
}

// An agent is settled when it waits for the job to begin, or has ended.
bool SshLauncher::are_all_settled() const {
  return std::ranges::all_of(agents_, [](const auto& agent) {
    return agent->has_ended() || (agent->state() == State::Ready && agent->failure().empty());
  });
}

void SshLauncher::check_start(size_t index, Instant now) {
  check_relay(index, now);
  RemoteAgent& agent = *agents_[index];
  if (!agent.failure().empty()) return;
  StartFacts facts{agent.host(), agent.is_local() ? plan_.own_program : plan_.program,
                   plan_.directory};
  facts.is_local = agent.is_local();
  facts.via = agent.via();
  if (agent.state() == State::Ready && agent.version() != version()) {
    fail(index, version_text(agent.host(), agent.version(), version()));
  } else if (agent.state() == State::Starting &&
             now >= agent.started_at() + limits::kSshStartTimeout) {
    facts.is_timeout = true;
    fail(index, start_failure_text(facts));
  } else if (has_lost_way(index)) {
    agents_[index] = std::make_unique<RemoteAgent>(agent.host(), agent.is_local());
    relays_[index].reset();  // start_some() tries the next way
  } else if (agent.has_ended()) {
    facts.exit_code = agent.exit_code();
    facts.errors = agent.errors();
    agent.fail(start_failure_text(facts));
  }
}

bool SshLauncher::leave_failed_hosts_out() {
  std::vector<Host> left;
  std::vector<Host> lost;
  std::vector<std::string> failures;
  for (size_t i = 0; i < agents_.size(); ++i) {
    const bool is_lost = !agents_[i]->failure().empty();
    if (is_lost) failures.push_back(agents_[i]->failure());
    (is_lost ? lost : left).push_back(plan_.hosts[i]);
  }
  const bool may_start = left.size() >= static_cast<size_t>(plan_.min_nodes);
  for (const std::string& each : with_each_hint_once(failures)) {
    print(may_start ? "warning: " : "error: ", each);
  }
  if (!may_start) {
    const bool is_elastic = left.empty() || plan_.min_nodes < static_cast<int>(plan_.hosts.size());
    const std::string needed = text::count(static_cast<size_t>(plan_.min_nodes), "host");
    print("error: ", "the job did not start: it needs " + needed + " and " +
                         std::to_string(left.size()) + (left.size() == 1 ? " is" : " are") +
                         " ready" + (is_elastic ? "" : kElasticHint));
    return false;
  }
  report("the job starts without " + join_names(lost) + ", which --nnodes=" + plan_.nnodes +
         " allows");
  plan_.hosts = std::move(left);
  left_out_.insert(left_out_.end(), lost.begin(), lost.end());
  return true;
}

void SshLauncher::abandon() {
  for (size_t i = 0; i < agents_.size(); ++i) {
    agents_[i]->close_input();
    if (agents_[i]->state() == State::Starting) agents_[i]->kill();
    if (relays_[i] && relays_[i]->is_starting()) relays_[i]->kill();
  }
  const Instant until = boot_now() + limits::kSshUrgentTimeout;
  const auto is_alive = [](const auto& agent) { return agent->has_process(); };
  while (std::ranges::any_of(agents_, is_alive)) {
    const bool is_due = boot_now() >= until || interrupts_ > 1;
    if (is_due) kill_all();
    step(is_due ? Instant::never() : until);
  }
}

// Relays too: one that does not answer any more would not kill its processes.
void SshLauncher::kill_all() {
  for (const auto& agent : agents_) agent->kill();
  for (const auto& relay : relays_) {
    if (relay) relay->kill();
  }
}

// ---------------------------------------------------------------- tree

bool SshLauncher::is_inner(size_t index) const {
  return std::ranges::find(parents_, std::optional(index)) != parents_.end();
}

// A host whose relay failed or was lost is passed over.
Relay* SshLauncher::relay_to(size_t index) const {
  for (auto at = parents_[index]; at; at = parents_[*at]) {
    if (relays_[*at] && relays_[*at]->is_ready()) return relays_[*at].get();
  }
  return nullptr;
}

// False while a relay on the way may still come.
bool SshLauncher::is_way_known(size_t index) const {
  for (auto at = parents_[index]; at; at = parents_[*at]) {
    const Relay* relay = relays_[*at].get();
    if (relay != nullptr && relay->is_ready()) return true;
    if (agents_[*at]->state() == State::Waiting || (relay != nullptr && relay->is_starting()))
      return false;
  }
  return true;
}

void SshLauncher::start(size_t index) {
  RemoteAgent& agent = *agents_[index];
  Relay* own = relays_[index].get();
  Relay* relay = relay_to(index);
  const std::string via = relay == nullptr ? "" : relay->host();
  if (own != nullptr && own->is_ready()) return start_by_own_relay(index, via);
  const bool is_relay_wanted = !is_running_ && is_inner(index);
  Result<std::vector<std::string>> words =
      is_relay_wanted    ? ssh_command(plan_, plan_.hosts[index], {std::string(kRelayArgument)})
      : agent.is_local() ? commands_[index].direct
                         : commands_[index].over_ssh;
  relays_[index] = is_relay_wanted ? std::make_unique<Relay>(agent) : nullptr;
  own = relays_[index].get();
  ProcessSink& sink = own == nullptr ? static_cast<ProcessSink&>(agent) : *own;
  Result<std::unique_ptr<Process>> process =
      words ? start_process(relay, *words, sink) : Result<std::unique_ptr<Process>>(words.error());
  if (!process) {
    relays_[index].reset();
    return agent.fail("host " + agent.host() + ": " + process.error().text);
  }
  if (own == nullptr) return agent.start(std::move(*process), header_, via, boot_now());
  own->run(std::move(*process));
  agent.await_relay(via, boot_now());
}

Result<std::unique_ptr<Process>> SshLauncher::start_process(Relay* relay,
                                                            const std::vector<std::string>& words,
                                                            ProcessSink& sink) {
  if (relay != nullptr) return relay->start(RelayFrame::Kind::StartSsh, words, sink);
  Result<std::unique_ptr<ChildProcess>> child =
      ChildProcess::start(context_, words, environment_, sink);
  if (!child) return child.error();
  return std::unique_ptr<Process>(std::move(*child));
}

void SshLauncher::start_by_own_relay(size_t index, const std::string& via) {
  Relay& relay = *relays_[index];
  RemoteAgent& agent = *agents_[index];
  relay.set_agent(agent);
  agent.start(relay.start(RelayFrame::Kind::StartAgent, commands_[index].direct, agent), header_,
              via, boot_now());
}

// What its login shell has printed.
const std::string& SshLauncher::login_text(size_t index) const {
  return relays_[index] ? relays_[index]->hello().login_text() : agents_[index]->login_text();
}

// The host that reaches this one was lost, and nothing is known of this one.
bool SshLauncher::has_lost_way(size_t index) const {
  const Relay* own = relays_[index].get();
  return agents_[index]->has_lost_relay() && (own == nullptr || own->end().is_relay_lost);
}

// Of an agent that waits for it.
void SshLauncher::check_relay(size_t index, Instant now) {
  RemoteAgent& agent = *agents_[index];
  Relay* relay = relays_[index].get();
  if (relay == nullptr || !agent.awaits_relay()) return;
  if (relay->has_ended()) {
    agent.on_end(relay->end(), now);
  } else if (relay->is_ready() && relay->hello().version() != version()) {
    fail(index, version_text(agent.host(), relay->hello().version(), version()));
  } else if (relay->is_ready()) {
    start_by_own_relay(index, agent.via());
  }
}

void SshLauncher::fail(size_t index, const std::string& why) {
  const bool awaited_relay = agents_[index]->awaits_relay();
  agents_[index]->fail(why);
  if (awaited_relay) relays_[index]->kill();
}

// ---------------------------------------------------------------- run

int SshLauncher::supervise() {
  while (is_any_running()) {
    step(std::min(others_deadline_, kill_at_));
    const Instant now = boot_now();
    if (now >= others_deadline_) {
      others_deadline_ = Instant::never();
      report("the other hosts are still running " + text::seconds(limits::kOtherAgentsTimeout, 0) +
             " later: they are asked to stop");
      stop_all(SIGTERM);
    }
    if (now >= kill_at_) {
      kill_at_ = Instant::never();
      kill_all();
    }
    try_returns(now);
  }
  return exit_code();
}

void SshLauncher::on_agent_end(size_t index) {
  if (!is_running_) return;
  const RemoteAgent& agent = *agents_[index];
  if (std::exchange(returns_[index].is_under_way, false)) return expect_return(index);
  const int code = agent.exit_code();
  if (code == kSuccess) {
    ++succeeded_;
    for (Return& back : returns_) back.at = Instant::never();
    // A host that has just returned may wait for a job that is over.
    for (size_t i = 0; i < agents_.size(); ++i) {
      const bool has_returned = returns_[i].attempts > 0 && agents_[i]->state() == State::Running;
      if (has_returned && others_deadline_.is_never())
        others_deadline_ = boot_now() + limits::kOtherAgentsTimeout;
    }
    return;
  }
  const bool continues = stop_signal_ == 0 && can_continue();
  if (!first_failure_ && !(continues && agent.is_lost())) {  // else the job outlives its loss
    const bool is_stopped = stop_signal_ != 0 && agent.is_lost();
    first_failure_ = is_stopped ? kSignalBase + stop_signal_ : agent.is_lost() ? kFailure : code;
  }
  if (stop_signal_ == 0) check_loss(index, continues);
}

int SshLauncher::running() const {
  const auto is_running = [](const auto& agent) { return agent->state() == State::Running; };
  return static_cast<int>(std::ranges::count_if(agents_, is_running));
}

bool SshLauncher::can_continue() const {
  return is_any_running() && running() + succeeded_ >= plan_.min_nodes;
}

// The other agents end by themselves when the job does. They wait for an agent that has not got so
// far, and in a job that may shrink they continue without it.
void SshLauncher::check_loss(size_t index, bool continues) {
  const RemoteAgent& agent = *agents_[index];
  if (agent.is_lost()) {
    const std::string way = has_lost_way(index) ? "connection through host " + agent.via()
                                                : std::string("ssh connection");
    report(
        "host " + agent.host() + " is lost: its " + way + " has ended" +
        (continues ? "; the job continues without it" : "; the job stops, too few hosts are left"));
    if (!continues) stop_all(SIGTERM);
  } else if (!continues && is_any_running() && others_deadline_.is_never()) {
    others_deadline_ = boot_now() + limits::kOtherAgentsTimeout;
  }
  if (continues && may_return(index)) expect_return(index);
}

// One that has returned before may have met its own former agent, which still had the port.
bool SshLauncher::may_return(size_t index) const {
  const RemoteAgent& agent = *agents_[index];
  const bool has_failed = returns_[index].attempts > 0 && agent.exit_code() == kFailure;
  return !plan_.is_static && (agent.is_lost() || has_failed);
}

void SshLauncher::expect_return(size_t index) {
  Return& back = returns_[index];
  const bool is_over = stop_signal_ != 0 || succeeded_ > 0;
  if (is_over || back.attempts >= limits::kSshReturns) return;
  constexpr int kDoublings = 10;
  const Duration pause = limits::kSshReturnFirst * (1 << std::min(back.attempts, kDoublings));
  back.at = boot_now() + std::min(pause, limits::kSshReturnMax);
}

void SshLauncher::try_returns(Instant now) {
  for (size_t i = 0; i < agents_.size(); ++i) {
    Return& back = returns_[i];
    if (now >= back.at) {
      back.at = Instant::never();
      ++back.attempts;
      agents_[i] = std::make_unique<RemoteAgent>(plan_.hosts[i].target, agents_[i]->is_local());
      start(i);
      back.is_under_way = !agents_[i]->has_ended();
      if (!back.is_under_way) expect_return(i);
    }
    RemoteAgent& agent = *agents_[i];
    if (!back.is_under_way) continue;
    check_start(i, now);
    if (agent.state() != State::Ready || !agent.failure().empty()) continue;
    back.is_under_way = false;
    const bool is_new = std::exchange(back.was_left_out, false);
    report("host " + agent.host() +
           (is_new ? " can be reached now: it joins the job" : " is back: it joins the job again"));
    agent.begin();
  }
}

void SshLauncher::stop_all(int signal) {
  if (stop_signal_ == 0) stop_signal_ = signal;
  if (discard_at_.is_never()) discard_at_ = boot_now() + limits::kMergedOutputStop;
  for (const auto& agent : agents_) agent->send_signal(signal);
  for (size_t i = 0; i < returns_.size(); ++i) {
    returns_[i].at = Instant::never();
    if (is_returning(i)) agents_[i]->kill();
  }
}

// The job succeeded if as many nodes as it needs did; others have left it before.
int SshLauncher::exit_code() const {
  if (succeeded_ > 0 && (succeeded_ >= plan_.min_nodes || !first_failure_)) return kSuccess;
  return first_failure_.value_or(kFailure);
}

// ---------------------------------------------------------------- polling

void SshLauncher::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGINT || number == SIGQUIT) ++interrupts_;
    if (interrupts_ > 1) kill_at_ = std::min(kill_at_, boot_now() + limits::kSshUrgentTimeout);
    if (is_running_ && stop_signal_ == 0) {
      report(signal_name(number) + ": the job is stopped on " +
             text::count(static_cast<size_t>(running()), "host"));
    }
    stop_all(number);
  }
}

// Nothing more is read from the hosts for now.
bool SshLauncher::must_wait(const MergedOutput& output) const {
  return output.is_full() && boot_now() < discard_at_;
}

void SshLauncher::finish_output() {
  while ((err_.is_waiting() || out_.is_waiting()) && boot_now() < discard_at_) step(discard_at_);
}

Instant SshLauncher::next_deadline() const {
  Instant next = must_wait(out_) || must_wait(err_) ? discard_at_ : Instant::never();
  for (const auto& agent : agents_) {
    next = std::min(next, agent->part_deadline());
    if (agent->state() == State::Starting && agent->failure().empty())
      next = std::min(next, agent->started_at() + limits::kSshStartTimeout);
  }
  for (const Return& back : returns_) next = std::min(next, back.at);
  return next;
}

void SshLauncher::step(Instant until) {
  poll_processes(std::min(until, next_deadline()));
  take_signals();
  if (is_running_) return;
  for (size_t i = 0; i < agents_.size(); ++i) check_start(i, boot_now());
}

void SshLauncher::poll_processes(Instant until) {
  std::vector<pollfd> polled = {{signals_.get(), POLLIN, 0},
                                {out_.is_waiting() ? out_.poll_fd() : -1, POLLOUT, 0},
                                {err_.is_waiting() ? err_.poll_fd() : -1, POLLOUT, 0}};
  const size_t own = polled.size();
  const bool reads_out = !must_wait(out_);
  const bool reads_err = !must_wait(err_);
  std::vector<ChildProcess*> children;
  for (size_t i = 0; i < agents_.size(); ++i) {
    if (ChildProcess* child = agents_[i]->child()) {
      child->add_polled(polled, reads_out, reads_err);
      children.push_back(child);
    }
    ChildProcess* relay = relays_[i] ? relays_[i]->child() : nullptr;
    if (relay == nullptr) continue;
    relay->add_polled(polled, reads_out && reads_err, reads_err);
    children.push_back(relay);
  }
  for (const ChildProcess* child : children) until = std::min(until, child->leave_at());
  poll_until(polled, until);
  const Instant now = boot_now();
  if (polled[1].revents != 0) out_.flush();
  if (polled[2].revents != 0) err_.flush();
  for (size_t i = 0; i < children.size(); ++i) {
    children[i]->on_polled(&polled[own + i * ChildProcess::kPolled], now);
  }
  for (size_t i = 0; i < agents_.size(); ++i) {
    agents_[i]->show_parts(now, reads_out && reads_err);
    const RemoteAgent::Text text = agents_[i]->take_text();
    if (!is_returning(i)) show(text);
  }
  for (size_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i]->take_end()) on_agent_end(i);
  }
}

void SshLauncher::show(const RemoteAgent::Text& text) {
  const bool may_drop = boot_now() >= discard_at_;
  if (!text.out.empty() && !(may_drop && out_.is_full())) out_.add(text.out);
  if (!text.err.empty() && !(may_drop && err_.is_full())) err_.add(text.err);
}

void SshLauncher::print(const char* kind, const std::string& text) { err_.add(kind + text + "\n"); }

int run_over_ssh(const LaunchOverSsh& launch, const Environment& environment) {
  Result<Surroundings> here = look_around();
  Result<LaunchPlan> plan =
      here ? make_plan(launch, environment, *here) : Result<LaunchPlan>(here.error());
  Result<std::unique_ptr<SshLauncher>> launcher =
      plan ? SshLauncher::make(std::move(*plan), environment.variables)
           : Result<std::unique_ptr<SshLauncher>>(plan.error());
  if (launcher) return (*launcher)->run();
  MergedOutput(STDERR_FILENO).add("error: " + launcher.error().text + "\n");
  return exit_code(launcher.error());
}

}  // namespace cpprun::ssh
