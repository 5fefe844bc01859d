#include "launcher/cpprunctl/rendezvous_client.hpp"

#include "agent/rendezvous/rendezvous_client.hpp"
#include "common/endpoint.hpp"
#include "launcher/options/node_range.hpp"

namespace cpprun {
namespace {

Status read_nnodes(const std::string& text, RendezvousClientOptions& options) {
  const auto range = parse_node_range(text);
  if (!range) return Error{ErrorKind::Usage, "--nnodes=" + text + "\nhint: write N or MIN:MAX"};
  options.min_nodes = range->first;
  options.max_nodes = range->second;
  return {};
}

}  // namespace

Result<int> rendezvous_client(const RendezvousClientCommand& command) {
  RendezvousClientOptions options;
  Result<Endpoint> endpoint = parse_endpoint(command.endpoint, kRendezvousPort);
  if (!endpoint) return Error{ErrorKind::Usage, endpoint.error().text};
  options.endpoint = *endpoint;
  if (Status ok = read_nnodes(command.nnodes, options); !ok) return ok.error();
  options.run_id = command.run_id;
  options.local_addr = command.local_addr;
  options.join_timeout = seconds(command.join_timeout);
  options.connect_timeout = seconds(command.connect_timeout);
  if (command.last_call_timeout >= 0) options.last_call = seconds(command.last_call_timeout);
  auto tls = load_job_tls(command.tls, command.run_id);
  if (!tls) return tls.error();
  options.tls = *tls;
  return run_rendezvous_client(options);
}

}  // namespace cpprun
