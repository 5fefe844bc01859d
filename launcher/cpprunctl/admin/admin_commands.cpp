// The verbs that change a whole job. The coordinator executes the admin command; a local agent
// relays it, or with --endpoint this process sends it itself.
#include "rendezvous/protocol/admin/admin_commands.hpp"

#include <span>

#include "common/http/blocking_socket.hpp"
#include "common/limits/admin.hpp"
#include "common/limits/server.hpp"
#include "common/machine/identity.hpp"
#include "common/proof/hmac.hpp"
#include "common/version.hpp"
#include "launcher/cpprunctl/admin/job_choice.hpp"
#include "launcher/cpprunctl/jobs/job_verbs.hpp"
#include "launcher/cpprunctl/jobs/local_jobs.hpp"
#include "launcher/report/text_table.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun {
namespace {

using namespace ctl;
using control::AdminCommandKind;

std::string framed(const control::AgentMessage& message) {
  std::string frame;
  control::append_frame(frame, control::encode(message));
  return frame;
}

Error no_coordinator() {
  return Error{ErrorKind::Protocol, "it is not the rendezvous port of a cpprun job"};
}

// Receives the next message; a refusal becomes an error.
Result<control::CoordinatorMessage> next_message(BlockingSocket& socket) {
  constexpr size_t kLength = 4;
  Result<std::string> bytes = socket.receive(kLength);
  if (!bytes) return bytes.error();
  if (bytes->size() < kLength) return no_coordinator();
  const auto length = control::frame_length(*bytes, limits::kControlFrameBytes);
  if (!length) return no_coordinator();
  Result<std::string> body = socket.receive(*length);
  if (!body) return body.error();
  const auto* data = reinterpret_cast<const uint8_t*>(body->data());
  auto message = control::decode_coordinator(std::span(data, body->size()));
  if (!message) return no_coordinator();
  if (const auto* refused = std::get_if<control::Refused>(&*message)) {
    return Error{ErrorKind::Refused, refused->why};
  }
  return message;
}

Result<std::string> converse(BlockingSocket& socket, const std::string& token,
                             control::AdminRequest command) {
  std::string first(std::begin(control::kMagic), std::end(control::kMagic));
  first += framed(control::AdminHello{control::kProtocolVersion, version()});
  if (Status sent = socket.send(first); !sent) return sent.error();
  auto challenge = next_message(socket);
  if (!challenge) return challenge.error();
  const auto* nonce = std::get_if<control::Challenge>(&*challenge);
  if (nonce == nullptr) return no_coordinator();
  command.mac = hmac_of(token, control::admin_mac_input(nonce->nonce, command));
  if (Status sent = socket.send(framed(command)); !sent) return sent.error();
  auto heard = next_message(socket);
  if (!heard) return heard.error();
  const auto* answer = std::get_if<control::AdminReply>(&*heard);
  if (answer == nullptr) return no_coordinator();
  if (!answer->is_done) return Error{ErrorKind::Refused, answer->text};
  return answer->text;
}

// The TLS handshake with the coordinator.
Status secure(BlockingSocket& socket, const JobTls& tls) {
  const Status ready = socket.secure(tls.connect(TlsRole::Coordinator));
  if (ready || !socket.is_ended_in_handshake()) return ready;
  return Error{ready.error().kind,
               ready.error().text + ": it may have no secret, or be an older cpprun"};
}

// Sends an admin command over TCP, authenticated by challenge and response (docs/protocol.md,
// "Admin commands"). Returns the coordinator's reply; blocks for limits::kAdminReplyTimeout at
// most.
Result<std::string> send_admin_command(const Endpoint& endpoint, const std::string& token,
                                       control::AdminRequest command, const JobTls* tls) {
  Result<std::unique_ptr<BlockingSocket>> socket = dial(endpoint, limits::kAdminReplyTimeout);
  if (!socket) return socket.error();
  const Status ready = tls != nullptr ? secure(**socket, *tls) : Status();
  Result<std::string> answer =
      ready ? converse(**socket, token, std::move(command)) : Result<std::string>(ready.error());
  if (answer) return answer;
  return Error{answer.error().kind, to_string(endpoint) + ": " + answer.error().text};
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
