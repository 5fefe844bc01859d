#include "launcher/ctl/serve.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>

#include "common/endpoint.hpp"
#include "common/log/log.hpp"
#include "rendezvous/server/loop.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {
namespace {

constexpr size_t kMiB = 1024 * 1024;

// One descriptor per connection: take what the system allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// glibc would learn from the first large value to keep later ones on its heap, where they fragment
// it and growing copies them. A fixed threshold leaves each in pages of its own, given back when it
// goes.
void keep_large_values_apart() {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMiB));
}

std::string status_json(const Server& server, const Store& store) {
  return "{\"version\": \"" CPPRUN_VERSION "\", \"connections\": " +
         std::to_string(server.connections()) +
         ", \"store\": {\"keys\": " + std::to_string(store.keys()) +
         ", \"waits\": " + std::to_string(store.waits()) + "}}\n";
}

}  // namespace

Status serve(const ServeOptions& options) {
  Result<Endpoint> endpoint = parse_endpoint(options.listen, std::nullopt);
  if (!endpoint) return Error{ErrorKind::Usage, endpoint.error().text};
  raise_descriptor_limit();
  keep_large_values_apart();
  ServerLoop loop;
  auto store = std::make_shared<Store>();
  std::unique_ptr<Server> server;
  ServerOptions server_options;
  server_options.store.value_bytes = options.store_value_limit_mb * kMiB;
  ServerHooks hooks;
  hooks.store_for_main_port = [store] { return store; };
  hooks.status_json = [&server, store] { return status_json(*server, *store); };
  server = std::make_unique<Server>(loop.context(), server_options, std::move(hooks));
  Result<uint16_t> port = server->listen(*endpoint);
  if (!port) return port.error();
  loop.on_signal({SIGTERM, SIGINT}, [&server](int) { server->stop(); });
  log::plain("cpprun: serving on " + to_string(Endpoint{endpoint->host, *port}) + "\n");
  loop.run();
  return {};
}

}  // namespace cpprun
