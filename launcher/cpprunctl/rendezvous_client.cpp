#include "launcher/cpprunctl/rendezvous_client.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/rendezvous/rendezvous_client.hpp"
#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr uint16_t kDefaultPort = 29400;  // torchrun's

Duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Status read_nnodes(const std::string& text, RendezvousClientOptions& options) {
  const std::vector<std::string> parts = text::split(text, ':');
  const std::optional<int64_t> min = text::parse_int(parts.front());
  const std::optional<int64_t> max = text::parse_int(parts.back());
  if (parts.size() > 2 || !min || !max || *min < 1 || *min > *max) {
    return Error{ErrorKind::Usage, "--nnodes=" + text + "\nhint: write N or MIN:MAX"};
  }
  options.min_nodes = *min;
  options.max_nodes = *max;
  return {};
}

}  // namespace

Result<int> rendezvous_client(const RendezvousClientCommand& command) {
  RendezvousClientOptions options;
  Result<Endpoint> endpoint = parse_endpoint(command.endpoint, kDefaultPort);
  if (!endpoint) return Error{ErrorKind::Usage, endpoint.error().text};
  options.endpoint = *endpoint;
  if (Status ok = read_nnodes(command.nnodes, options); !ok) return ok.error();
  options.run_id = command.run_id;
  options.local_addr = command.local_addr;
  options.join_timeout = seconds_of(command.join_timeout);
  options.connect_timeout = seconds_of(command.connect_timeout);
  if (command.last_call_timeout >= 0) options.last_call = seconds_of(command.last_call_timeout);
  auto tls = load_job_tls(command.tls, command.run_id);
  if (!tls) return tls.error();
  options.tls = *tls;
  return run_rendezvous_client(options);
}

}  // namespace cpprun
