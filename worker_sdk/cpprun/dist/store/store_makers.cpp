// Stores that other processes can reach: TCP and file.
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/init/local_address.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::dist {
namespace {

std::string place(const std::string& host, int port) {
  return "make_tcp_store at " + host + ":" + std::to_string(port);
}

void check_port(const std::string& host, int port, bool is_master) {
  if (port <= 65'535 && port >= (is_master ? 0 : 1)) return;
  throw DistArgumentError(place(host, port) + ": the port must be from " +
                          (is_master ? "0 (any)" : "1") + " to 65535");
}

}  // namespace

Store make_tcp_store(const std::string& host, int port, int world_size, bool is_master,
                     std::chrono::milliseconds timeout, bool wait_for_workers) {
  check_port(host, port, is_master);
  if (!is_master) {
    const std::string why = wait_for_listener(host, port, timeout);
    if (!why.empty()) {
      throw DistTimeoutError(place(host, port) + ": nobody accepted a connection within " +
                             std::to_string(timeout.count()) + " ms (" + why + ")");
    }
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = is_master;
  options.timeout = timeout;
  options.waitWorkers = wait_for_workers;
  if (world_size > 0) options.numWorkers = static_cast<size_t>(world_size);
  return translated(place(host, port),
                    [&] { return wrap(c10::make_intrusive<c10d::TCPStore>(host, options)); });
}

int tcp_store_port(const Store& store) {
  const auto* tcp = dynamic_cast<c10d::TCPStore*>(native(store).get());
  if (tcp == nullptr) throw DistArgumentError("tcp_store_port: this is no TCP store");
  return tcp->getPort();
}

Store make_file_store(const std::string& path, int world_size) {
  return translated("make_file_store at '" + path + "'",
                    [&] { return wrap(c10::make_intrusive<c10d::FileStore>(path, world_size)); });
}

}  // namespace cpprun::dist
