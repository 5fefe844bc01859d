// The commands that change a whole job. The coordinator executes the admin command; a local agent
// relays it, or with --endpoint this process sends it itself.
#include "rendezvous/protocol/admin/admin_commands.hpp"

#include "common/limits/admin.hpp"
#include "common/machine/identity.hpp"
#include "common/proof/hmac.hpp"
#include "launcher/cpprunctl/admin/admin_connection.hpp"
#include "launcher/cpprunctl/admin/job_choice.hpp"
#include "launcher/cpprunctl/jobs/job_commands.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/text_table.hpp"
#include "launcher/ssh/plan/shell_command.hpp"

namespace cpprun {
namespace {

using namespace ctl;
using control::AdminCommandKind;

// Sends an admin command over TCP, authenticated by challenge and response (docs/protocol.md,
// "Admin commands"). Returns the coordinator's reply; blocks for limits::kAdminReplyTimeout at
// most.
Result<std::string> send_admin_command(const Endpoint& endpoint, const std::string& token,
                                       control::AdminRequest command, const JobTls* tls) {
  auto opened = AdminConnection::open(endpoint, tls, limits::kAdminReplyTimeout);
  if (!opened) return opened.error();
  AdminConnection& connection = **opened;
  command.mac = hmac_of(token, control::admin_mac_input(connection.nonce(), command));
  if (Status sent = connection.send(command); !sent) return sent.error();
  auto received = connection.next();
  if (!received) return received.error();
  const auto* answer = std::get_if<control::AdminReply>(&*received);
  if (answer == nullptr) return connection.not_expected();
  if (!answer->is_done) {
    return Error{ErrorKind::Refused, to_string(endpoint) + ": " + answer->text};
  }
  return answer->text;
}

Status send_to_endpoint(const JobCommandOptions& options, const control::AdminCommand& command) {
  Result<Endpoint> where = parse_endpoint(options.endpoint, kRendezvousPort);
  if (!where) return Error{ErrorKind::Usage, where.error().text};
  const std::string token = admin_token();
  if (token.empty()) {
    return Error{ErrorKind::Usage,
                 "over TCP nothing is changed without a token: set CPPRUN_ADMIN_TOKEN to what "
                 "the job was started with"};
  }
  auto tls = load_job_tls(options.tls, options.job);
  if (!tls) return tls.error();
  Result<std::string> answer =
      send_admin_command(*where, token, {options.job, command}, tls->get());
  if (!answer) return answer.error();
  print(to_string(*where) + ": " + *answer + "\n");
  return {};
}

ChangeRequest request_of(const JobCommandOptions& options, const control::AdminCommand& command) {
  ChangeRequest request{name_of(command.kind), name_of(command.kind), options.job};
  request.is_specific = !command.node.empty();
  if (request.is_specific) request.command += " " + ssh::shell_quoted(command.node);
  if (command.kind == AdminCommandKind::Scale)
    request.command += " " + std::to_string(command.nodes);
  if (options.is_resumable) request.command += " --resumable";
  if (options.is_here) request.command += " --here";
  return request;
}

// Sends it through one local agent of the job, preferably the one beside the coordinator.
Status send_command(const JobCommandOptions& options, const control::AdminCommand& command) {
  if (!options.endpoint.empty()) return send_to_endpoint(options, command);
  auto agents = choose_job(request_of(options, command));
  if (!agents) return agents.error();
  const LocalJob& job = agents->front();
  const admin::AdminQuery query{"admin_command",
                                {{"kind", name_of(command.kind)},
                                 {"node", command.node},
                                 {"nodes", std::to_string(command.nodes)},
                                 {"reason", command.reason},
                                 {"resumable", command.is_resumable ? "1" : "0"}}};
  Result<std::string> body = ask(job.agent, query, limits::kAdminReplyTimeout);
  if (!body) return body.error();
  print(job.view.run_id + ": " + done_text(*body) + "\n");
  return {};
}

// Asks every local agent, even after a failure: a half stopped job is useless.
Status stop_here(const JobCommandOptions& options) {
  auto agents = choose_job(request_of(options, {0, AdminCommandKind::Stop, options.is_resumable}));
  if (!agents) return agents.error();
  Status all;
  const std::string saves = options.is_resumable ? "1" : "0";
  for (const LocalJob& job : *agents) {
    Result<std::string> body =
        ask(job.agent, {"leave", {{"resumable", saves}}}, limits::kAdminReplyTimeout);
    if (body) print(job.view.node + ": " + done_text(*body) + "\n");
    if (!body) all = body.error();
  }
  return all;
}

}  // namespace

Status restart(const JobCommandOptions& options) {
  return send_command(options, {0, AdminCommandKind::Restart});
}

Status drain(const JobCommandOptions& options) {
  return send_command(options, {0, AdminCommandKind::Drain, false, options.node});
}

Status stop(const JobCommandOptions& options) {
  if (options.is_here) return stop_here(options);
  return send_command(options, {0, AdminCommandKind::Stop, options.is_resumable});
}

Status exclude(const JobCommandOptions& options) {
  return send_command(options,
                      {0, AdminCommandKind::Exclude, false, options.node, 0, options.reason});
}

Status readmit(const JobCommandOptions& options) {
  return send_command(options, {0, AdminCommandKind::Readmit, false, options.node});
}

Status scale(const JobCommandOptions& options) {
  return send_command(options, {0, AdminCommandKind::Scale, false, "", options.nodes});
}

}  // namespace cpprun
