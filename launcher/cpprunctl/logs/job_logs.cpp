#include "launcher/cpprunctl/logs/job_logs.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/endpoint.hpp"
#include "common/limits/log_files.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "common/proof/hmac.hpp"
#include "common/text.hpp"
#include "launcher/cpprunctl/admin/admin_connection.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/cpprunctl/logs/node_logs.hpp"
#include "launcher/report/text_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::ctl {
namespace {

// A node of the job, as the coordinator lists it.
struct ReadNode {
  NodeLogs logs;
  bool can_read = false;
  bool is_absence_reported = false;
  Instant seen_at{};                 // the last time that it could be read
  std::optional<int64_t> pending{};  // the request on its way
  Instant asked_at{};

  bool is_silent(Instant now) const { return pending && now - asked_at > limits::kLogNodeAbsent; }
};

void wait_for(Duration time) { ::poll(nullptr, 0, static_cast<int>(time.count() / 1'000'000)); }

class JobLogs {
 public:
  JobLogs(const JobCommandOptions& options, std::string token, std::shared_ptr<const JobTls> tls)
      : options_(options), token_(std::move(token)), tls_(std::move(tls)) {
    sink_.line = [this](int64_t rank, const std::string& line) { show(rank, line); };
    sink_.gap = [](const std::string& what) { log::warning(text::printable(what)); };
  }

  Status run(std::string run_id, std::optional<Endpoint> endpoint);

 private:
  Status connect();
  std::optional<Endpoint> endpoint_here() const;
  // Asks every node and for the list, and takes what comes within a poll. Error: the connection has
  // ended.
  Status cycle();
  Status ask_nodes();
  // `mac`: of the first request of a connection, which authenticates it.
  Status ask_list(int64_t skip, const std::string& mac = "");
  // Waits for the next reply, and takes it.
  Status take_reply();
  Status on(const control::LogReply& reply);
  Status on_list(const control::LogReply& reply);
  Status on_answer(Incarnation id, ReadNode& node, const control::LogReply& reply);
  Status ask(Incarnation id, ReadNode& node);
  RoundNumber newest_round() const;
  void report_absent(bool is_end);
  bool is_done() const;
  Status finish();
  void show(int64_t rank, const std::string& line) const;

  const JobCommandOptions& options_;
  const std::string token_;
  const std::shared_ptr<const JobTls> tls_;
  NodeLogs::Sink sink_;
  std::string run_id_;
  std::optional<Endpoint> endpoint_;  // given by the user; else agents here know it
  std::unique_ptr<AdminConnection> connection_;
  std::map<Incarnation, ReadNode> nodes_;
  int64_t last_id_ = 0;
  int64_t list_id_ = 0;
  std::vector<Incarnation> listed_now_;
  bool has_list_ = false;
  bool is_job_over_ = false;
  bool is_list_first_ = true;  // names that several nodes have get their group ranks
};

void JobLogs::show(int64_t rank, const std::string& line) const {
  if (options_.rank) {
    if (rank == *options_.rank) print_unchanged(line + "\n");
    return;
  }
  print_unchanged("[" + std::to_string(rank) + "]: " + line + "\n");
}

std::optional<Endpoint> JobLogs::endpoint_here() const {
  if (endpoint_) return endpoint_;
  const Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), run_id_);
  if (!agents) return std::nullopt;
  for (const LocalJob& job : *agents) {
    const Result<Endpoint> at = parse_endpoint(job.view.coordinator, kRendezvousPort);
    if (!job.view.coordinator.empty() && at) return *at;
  }
  return std::nullopt;
}

Status JobLogs::connect() {
  connection_.reset();
  const std::optional<Endpoint> at = endpoint_here();
  if (!at) {
    return Error{ErrorKind::Network,
                 "no agent of the job here has a connection to its coordinator"};
  }
  auto opened = AdminConnection::open(*at, tls_.get(), limits::kLogAnswer);
  if (!opened) return opened.error();
  connection_ = std::move(*opened);
  for (auto& [id, node] : nodes_) node.pending.reset();
  const std::string input = control::log_request_mac_input(connection_->nonce(), run_id_);
  if (Status sent = ask_list(0, hmac_of(token_, input)); !sent) return sent;
  while (!has_list_) {
    if (Status ok = take_reply(); !ok) return ok;
  }
  return {};
}

Status JobLogs::take_reply() {
  const auto message = connection_->next();
  if (!message) return message.error();
  const auto* reply = std::get_if<control::LogReply>(&*message);
  return reply == nullptr ? Status(connection_->not_expected()) : on(*reply);
}

Status JobLogs::ask_list(int64_t skip, const std::string& mac) {
  control::LogRequest request;
  request.id = list_id_ = ++last_id_;
  request.skip = skip;
  request.mac = mac;
  if (!mac.empty()) request.run_id = run_id_;
  has_list_ = false;
  if (skip == 0) listed_now_.clear();
  return connection_->send(request);
}

Status JobLogs::ask(Incarnation id, ReadNode& node) {
  control::LogRequest request = node.logs.request(id);
  request.id = ++last_id_;
  node.pending = request.id;
  node.asked_at = boot_now();
  return connection_->send(request);
}

// The round that nodes may read now: none reads on while another one lacks lines of a round before.
RoundNumber JobLogs::newest_round() const {
  RoundNumber newest(INT64_MAX);
  const Instant now = boot_now();
  for (const auto& [id, node] : nodes_) {
    if (!node.can_read || node.is_silent(now)) continue;
    const NodeLogs& logs = node.logs;
    if (!logs.has_answered()) return RoundNumber();
    if (!logs.is_through()) newest = std::min(newest, logs.round());
    if (logs.is_through() && logs.next_round() > logs.round())
      newest = std::min(newest, logs.next_round());
  }
  return newest;
}

Status JobLogs::ask_nodes() {
  const RoundNumber newest = newest_round();
  for (auto& [id, node] : nodes_) {
    if (!node.can_read || node.pending) continue;
    const RoundNumber next = node.logs.next_round();
    if (node.logs.is_through() && next > node.logs.round() && next <= newest)
      node.logs.advance(sink_);
    if (Status sent = ask(id, node); !sent) return sent;
  }
  return {};
}

Status JobLogs::cycle() {
  connection_->extend(limits::kLogAnswer);
  if (Status sent = ask_nodes(); !sent) return sent;
  if (Status sent = ask_list(0); !sent) return sent;
  const Instant until = boot_now() + limits::kLogPoll;
  while (!has_list_ || connection_->has_input(std::max(Duration{}, until - boot_now()))) {
    if (Status ok = take_reply(); !ok) return ok;
    if (has_list_ && boot_now() >= until) break;
  }
  std::fflush(stdout);
  return {};
}

Status JobLogs::on(const control::LogReply& reply) {
  if (reply.id == list_id_ && !has_list_) return on_list(reply);
  for (auto& [id, node] : nodes_) {
    if (node.pending == reply.id) return on_answer(id, node, reply);
  }
  return {};
}

Status JobLogs::on_list(const control::LogReply& reply) {
  is_job_over_ = is_job_over_ || reply.is_job_over;
  std::map<std::string, int> names;
  for (const control::LogNode& node : reply.nodes) ++names[node.id.name];
  for (const control::LogNode& node : reply.nodes) {
    const Incarnation id = node.id.incarnation;
    listed_now_.push_back(id);
    std::string name = "node " + node.id.name;
    if (names[node.id.name] > 1 && node.group_rank >= 0)
      name += " (group rank " + std::to_string(node.group_rank) + ")";
    const bool is_wanted = options_.node.empty() || options_.node == node.id.name ||
                           options_.node == std::to_string(node.group_rank);
    if (!is_wanted || nodes_.size() >= limits::kLogNodesRead) continue;
    const int64_t lines = options_.has_lines ? options_.lines : -1;
    ReadNode& read =
        nodes_.try_emplace(id, ReadNode{NodeLogs(name, is_list_first_ ? lines : -1)}).first->second;
    read.can_read = node.can_read;
    if (read.can_read) {
      read.seen_at = boot_now();
      read.is_absence_reported = false;
    }
  }
  const auto listed = static_cast<int64_t>(listed_now_.size());
  if (!reply.nodes.empty() && listed < reply.nodes_in_all) return ask_list(listed);
  for (auto& [id, node] : nodes_) {
    if (std::ranges::find(listed_now_, id) == listed_now_.end()) node.can_read = false;
  }
  has_list_ = true;
  is_list_first_ = false;
  return {};
}

Status JobLogs::on_answer(Incarnation id, ReadNode& node, const control::LogReply& reply) {
  node.pending.reset();
  is_job_over_ = is_job_over_ || reply.is_job_over;
  if (!reply.why.empty())
    return {};  // the list states whether it can be read, and cycle() asks again
  node.logs.take(reply, newest_round(), sink_);
  return reply.has_more && reply.round == node.logs.round() ? ask(id, node) : Status();
}

// Names nodes that cannot be read, once each. After a node reconnects, its files are read on.
void JobLogs::report_absent(bool is_end) {
  const Instant now = boot_now();
  for (auto& [id, node] : nodes_) {
    const bool is_away = !node.can_read && now - node.seen_at > limits::kLogNodeAbsent;
    const bool lacks_lines = is_end ? !node.logs.has_all() && options_.follows : true;
    const bool is_due = is_end ? lacks_lines || !node.logs.is_caught_up()
                               : (node.is_silent(now) || is_away) && !node.logs.has_all();
    if (!is_due || node.is_absence_reported) continue;
    node.is_absence_reported = true;
    node.logs.finish(sink_);
    sink_.gap(node.logs.name() + " cannot be read" + (is_end ? "" : " now") +
              ": the lines of round " + std::to_string(node.logs.round().value) +
              " behind those above are missing");
  }
}

bool JobLogs::is_done() const {
  return std::ranges::all_of(nodes_, [&](const auto& entry) {
    const ReadNode& node = entry.second;
    if (!node.can_read) return true;
    const bool has_next = node.logs.next_round() > node.logs.round();
    const bool has_all = options_.follows ? node.logs.has_all() : node.logs.is_caught_up();
    return has_all && !has_next;
  });
}

Status JobLogs::finish() {
  report_absent(true);
  for (auto& [id, node] : nodes_) node.logs.finish(sink_);
  std::fflush(stdout);
  const bool has_files =
      std::ranges::any_of(nodes_, [](const auto& entry) { return entry.second.logs.has_files(); });
  if (has_files) return {};
  return Error{ErrorKind::BadValue,
               "there are no log files: no worker has started, or the job keeps none "
               "(--log-dir DIR --tee 3 does)"};
}

Status JobLogs::run(std::string run_id, std::optional<Endpoint> endpoint) {
  run_id_ = std::move(run_id);
  endpoint_ = std::move(endpoint);
  if (Status first = connect(); !first) return first;
  for (;;) {
    const Status ok = cycle();
    if (ok && is_done() && (is_job_over_ || !options_.follows)) return finish();
    report_absent(false);
    if (ok) continue;
    if (is_job_over_) return finish();
    // A standby may lead the job now, or the same coordinator again.
    const Instant until = boot_now() + limits::kLogReconnect;
    Status back = connect();
    while (!back && boot_now() < until) {
      wait_for(limits::kLogPoll);
      back = connect();
    }
    if (back) continue;
    log::warning("the connection to the coordinator has ended: " + back.error().text);
    return finish();
  }
}

}  // namespace

Status all_nodes_logs(const JobCommandOptions& options) {
  const std::string token = admin_token();
  if (token.empty()) {
    return Error{ErrorKind::Usage,
                 "log files of other nodes are shown only with the job's token: set "
                 "CPPRUN_ADMIN_TOKEN to what the job was started with"};
  }
  std::optional<Endpoint> endpoint;
  std::string run_id = options.job;
  if (!options.endpoint.empty()) {
    Result<Endpoint> at = parse_endpoint(options.endpoint, kRendezvousPort);
    if (!at) return Error{ErrorKind::Usage, at.error().text};
    endpoint = std::move(*at);
  } else {
    const Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), options.job);
    if (!agents) return agents.error();
    run_id = agents->front().view.run_id;
  }
  auto tls = load_job_tls(options.tls, run_id);
  if (!tls) return tls.error();
  return JobLogs(options, token, *tls).run(run_id, endpoint);
}

}  // namespace cpprun::ctl
