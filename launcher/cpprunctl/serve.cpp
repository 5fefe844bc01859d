#include "launcher/cpprunctl/serve.hpp"

#include <malloc.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "common/endpoint.hpp"
#include "common/log/log.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/own_addresses.hpp"
#include "rendezvous/server/control_service.hpp"
#include "rendezvous/server/coordinator_environment.hpp"
#include "rendezvous/server/loop.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {
namespace {

constexpr size_t kMiB = 1024 * 1024;

// After freeing the first large value, glibc would keep later ones on the heap, where they fragment
// it and growing copies them. A fixed threshold maps each value on its own and unmaps it when
// freed.
void keep_large_values_apart() { ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMiB)); }

// Unchanged if it is no name, or has no address: listening then fails with the reason.
std::string resolved(const std::string& host) {
  if (host.empty() || !known_addresses(host).empty()) return host;
  const Result<ResolvedHost> found = resolve_host(host);
  return found && !found->addresses.empty() ? found->addresses.front() : host;
}

}  // namespace

Status serve(const ServeOptions& options) {
  Result<Endpoint> endpoint = parse_endpoint(options.listen, std::nullopt);
  if (!endpoint) return Error{ErrorKind::Usage, endpoint.error().text};
  // For clients of any run id.
  auto tls = load_job_tls(options.tls, "");
  if (!tls) return tls.error();
  raise_descriptor_limit();
  keep_large_values_apart();
  ServerLoop loop;
  // A job that begins here has no standby, so no other program may announce another leader.
  CoordinatorOptions coordinator = coordinator_options();
  coordinator.needs_known_leader = true;
  ControlService service(loop.context(), std::move(coordinator));
  service.accept_admin_commands(admin_token(), random_secret);
  std::unique_ptr<Server> server;
  ServerOptions server_options;
  server_options.store.value_bytes = options.store_value_limit_mb * kMiB;
  server_options.host_names = options.allowed_hosts;
  server_options.host_names.push_back(endpoint->host);
  server_options.memory_bytes =
      options.store_memory_mb ? *options.store_memory_mb * kMiB : default_memory_bytes();
  server_options.tls = *tls;
  std::shared_ptr<Store> store;  // shared with its clients' sessions
  ServerHooks hooks;
  service.fill(hooks);
  // The workers of a static job use the store of its rounds; all other clients use ours.
  hooks.store_for_main_port = [&store, of_job = hooks.store_for_main_port] {
    std::shared_ptr<Store> found = of_job();
    return found ? found : store;
  };
  hooks.status_json = [&server, &service, &store] {
    return service.status({server->connections(), store->keys(), store->waits()});
  };
  server = std::make_unique<Server>(loop.context(), server_options, std::move(hooks));
  store = server->make_store();
  // The stores of rounds listen there too, and the loop must not wait for a resolver.
  const std::string address = resolved(endpoint->host);
  Result<uint16_t> port = server->listen({address, endpoint->port});
  if (!port) return port.error();
  service.attach(*server, address);
  loop.on_signal({SIGTERM, SIGINT}, [&](int) {
    server->stop();
    loop.stop();  // run() would wait for the coordinator's armed timer
  });
  log::plain("cpprun: serving on " + to_string(Endpoint{endpoint->host, *port}) + "\n");
  loop.run();
  return {};
}

}  // namespace cpprun
