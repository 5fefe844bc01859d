#include "launcher/cpprun/coordinator_instance.hpp"

#include <utility>

#include "common/machine/identity.hpp"
#include "rendezvous/server/coordinator_environment.hpp"

namespace cpprun {

CoordinatorInstance::CoordinatorInstance(ServerLoop& loop, const RendezvousConfig& config,
                                         CoordinatorOptions options)
    : service_(loop.context(), std::move(options)) {
  ServerHooks hooks;
  service_.fill(hooks);
  service_.accept_admin_commands(admin_token(), random_secret);
  ServerOptions server_options;
  server_options.store.value_bytes = config.conf.store_value_bytes;
  server_options.host_names = config.allowed_hosts;
  // With a name as endpoint the server listens on all addresses.
  server_options.host_names.push_back(config.endpoint.host);
  server_options.host_names.push_back(config.local_addr);
  server_options.memory_bytes = config.conf.store_memory_bytes.value_or(default_memory_bytes());
  server_options.tls = config.job_tls;
  server_ = std::make_unique<Server>(loop.context(), server_options, std::move(hooks));
}

Result<uint16_t> CoordinatorInstance::listen(const Endpoint& at) {
  Result<uint16_t> port = server_->listen(at);
  if (port) service_.attach(*server_, at.host);
  return port;
}

void CoordinatorInstance::stop() {
  service_.close();
  server_->stop();
}

CoordinatorOptions coordinator_options_of(const RendezvousConfig& config, Incarnation embedded) {
  CoordinatorOptions options = coordinator_options();
  options.embedded = embedded;
  options.wait_reminder_interval = config.wait_reminder_interval;
  return options;
}

}  // namespace cpprun
