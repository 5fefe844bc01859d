// The verbs that change a whole job. The coordinator executes the admin command; a local agent
// relays it, or with --endpoint this process sends it itself.
#include "rendezvous/protocol/admin/admin_commands.hpp"
#include "common/limits/admin.hpp"
#include "common/machine/identity.hpp"
#include "launcher/cpprunctl/admin/remote_admin.hpp"
#include "launcher/cpprunctl/jobs/job_verbs.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/cpprunctl/text/output.hpp"

namespace cpprun {
namespace {

using namespace ctl;
using control::AdminCommandKind;

Status send_to_endpoint(const JobCommandOptions& options, const control::AdminCommand& command) {
  Result<Endpoint> where = parse_endpoint(options.endpoint, kRendezvousPort);
  if (!where) return Error{ErrorKind::Usage, where.error().text};
  const std::string token = admin_token();
  if (token.empty()) {
    return Error{ErrorKind::Usage,
                 "over TCP nothing is changed without a token: set CPPRUN_ADMIN_TOKEN to what "
                 "the job was started with"};
  }
  Result<std::string> answer = send_admin_command(*where, token, {options.job, command});
  if (!answer) return answer.error();
  print(to_string(*where) + ": " + *answer + "\n");
  return {};
}

// Sends it through one local agent of the job, preferably the one beside the coordinator.
Status send_command(const JobCommandOptions& options, const control::AdminCommand& command) {
  if (!options.endpoint.empty()) return send_to_endpoint(options, command);
  Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), options.job);
  if (!agents) return agents.error();
  const LocalJob& job = agents->front();
  const admin::AdminQuery query{"admin_command",
                                {{"kind", name_of(command.kind)},
                                 {"node", command.node},
                                 {"nodes", std::to_string(command.nodes)},
                                 {"resumable", command.is_resumable ? "1" : "0"}}};
  Result<std::string> body = ask(job.agent, query, limits::kAdminReplyTimeout);
  if (!body) return body.error();
  print(job.view.run_id + ": " + done_text(*body) + "\n");
  return {};
}

// Asks every local agent, even after a failure: a half stopped job is useless.
Status stop_here(const JobCommandOptions& options) {
  Result<std::vector<LocalJob>> agents = agents_of(local_jobs(), options.job);
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

Status scale(const JobCommandOptions& options) {
  return send_command(options, {0, AdminCommandKind::Scale, false, "", options.nodes});
}

}  // namespace cpprun
