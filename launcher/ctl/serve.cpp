#include "launcher/ctl/serve.hpp"

#include <malloc.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/endpoint.hpp"
#include "common/log/log.hpp"
#include "rendezvous/server/control_service.hpp"
#include "rendezvous/server/coordinator_setup.hpp"
#include "rendezvous/server/loop.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {
namespace {

constexpr size_t kMiB = 1024 * 1024;

// glibc would learn from the first large value to keep later ones on its heap, where they fragment
// it and growing copies them. A fixed threshold leaves each in pages of its own, given back when it
// goes.
void keep_large_values_apart() {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMiB));
}

// The coordinator's page, and what only a server of its own has.
std::string whole_status(const std::string& of_jobs, const Server& server, const Store& store) {
  nlohmann::json page = nlohmann::json::parse(of_jobs);
  page["connections"] = server.connections();
  page["store"] = {{"keys", store.keys()}, {"waits", store.waits()}};
  return page.dump(2) + "\n";
}

}  // namespace

Status serve(const ServeOptions& options) {
  Result<Endpoint> endpoint = parse_endpoint(options.listen, std::nullopt);
  if (!endpoint) return Error{ErrorKind::Usage, endpoint.error().text};
  raise_descriptor_limit();
  keep_large_values_apart();
  ServerLoop loop;
  auto store = std::make_shared<Store>();
  ControlService service(loop.context(), coordinator_options());
  std::unique_ptr<Server> server;
  ServerOptions server_options;
  server_options.store.value_bytes = options.store_value_limit_mb * kMiB;
  ServerHooks hooks;
  service.fill(hooks);
  // A static job's workers meet at the store of its rounds, everybody else at ours.
  hooks.store_for_main_port = [store, of_job = hooks.store_for_main_port] {
    std::shared_ptr<Store> found = of_job();
    return found ? found : store;
  };
  hooks.status_json = [&server, store, of_jobs = hooks.status_json] {
    return whole_status(of_jobs(), *server, *store);
  };
  server = std::make_unique<Server>(loop.context(), server_options, std::move(hooks));
  Result<uint16_t> port = server->listen(*endpoint);
  if (!port) return port.error();
  service.attach(*server, endpoint->host);
  loop.on_signal({SIGTERM, SIGINT}, [&](int) {
    server->stop();
    loop.stop();  // the coordinator's timer may still wait for nodes
  });
  log::plain("cpprun: serving on " + to_string(Endpoint{endpoint->host, *port}) + "\n");
  loop.run();
  return {};
}

}  // namespace cpprun
