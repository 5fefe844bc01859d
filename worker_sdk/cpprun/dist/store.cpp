#include "cpprun/dist/store.hpp"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/init/local_address.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::dist {
namespace {

std::string listed_keys(const std::vector<std::string>& keys) {
  std::string all;
  for (const std::string& key : keys) all += (all.empty() ? "'" : ", '") + key + "'";
  return all;
}

std::vector<uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

// Calls `f` on the native store; errors name the call and the keys.
template <class F>
auto on_keys(const Store& store, const char* call, const std::string& keys, F&& f) {
  const auto held = cpprun::dist::native(store);
  std::string what("Store::");
  what.append(call).append("(").append(keys).append(")");
  return translated(std::move(what), [&] { return f(*held); });
}

template <class F>
auto on_key(const Store& store, const char* call, const std::string& key, F&& f) {
  return on_keys(store, call, "'" + key + "'", std::forward<F>(f));
}

std::string place(const std::string& host, int port) {
  return "make_tcp_store at " + host + ":" + std::to_string(port);
}

void check_port(const std::string& host, int port, bool is_master) {
  if (port <= 65'535 && port >= (is_master ? 0 : 1)) return;
  throw DistArgumentError(place(host, port) + ": the port must be from " +
                          (is_master ? "0 (any)" : "1") + " to 65535");
}

}  // namespace

c10::intrusive_ptr<c10d::Store> native(const Store& store) {
  if (store) return store.native()->store;
  throw DistArgumentError("an empty Store was used; make one with make_tcp_store() or its kin");
}

Store wrap(c10::intrusive_ptr<c10d::Store> store) {
  return Store(std::make_shared<Store::Native>(Store::Native{std::move(store)}));
}

void Store::set(const std::string& key, const std::string& value) {
  on_key(*this, "set", key, [&](c10d::Store& store) { store.set(key, value); });
}

std::string Store::get(const std::string& key) {
  return on_key(*this, "get", key, [&](c10d::Store& store) { return store.get_to_str(key); });
}

int64_t Store::add(const std::string& key, int64_t amount) {
  return on_key(*this, "add", key, [&](c10d::Store& store) { return store.add(key, amount); });
}

std::string Store::compare_set(const std::string& key, const std::string& expected,
                               const std::string& desired) {
  return on_key(*this, "compare_set", key,
                [&](c10d::Store& store) { return store.compareSet(key, expected, desired); });
}

void Store::wait(const std::vector<std::string>& keys) {
  on_keys(*this, "wait", listed_keys(keys), [&](c10d::Store& store) { store.wait(keys); });
}

void Store::wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  on_keys(*this, "wait", listed_keys(keys), [&](c10d::Store& store) { store.wait(keys, timeout); });
}

bool Store::check(const std::vector<std::string>& keys) {
  return on_keys(*this, "check", listed_keys(keys),
                 [&](c10d::Store& store) { return store.check(keys); });
}

bool Store::delete_key(const std::string& key) {
  return on_key(*this, "delete_key", key, [&](c10d::Store& store) { return store.deleteKey(key); });
}

int64_t Store::num_keys() {
  return on_keys(*this, "num_keys", "", [](c10d::Store& store) { return store.getNumKeys(); });
}

void Store::append(const std::string& key, const std::string& value) {
  on_key(*this, "append", key, [&](c10d::Store& store) { store.append(key, bytes(value)); });
}

std::vector<std::string> Store::multi_get(const std::vector<std::string>& keys) {
  return on_keys(*this, "multi_get", listed_keys(keys), [&](c10d::Store& store) {
    std::vector<std::string> values;
    for (const auto& value : store.multiGet(keys)) values.emplace_back(value.begin(), value.end());
    return values;
  });
}

void Store::multi_set(const std::vector<std::string>& keys,
                      const std::vector<std::string>& values) {
  on_keys(*this, "multi_set", listed_keys(keys), [&](c10d::Store& store) {
    std::vector<std::vector<uint8_t>> raw;
    for (const std::string& value : values) raw.push_back(bytes(value));
    store.multiSet(keys, raw);
  });
}

void Store::set_timeout(std::chrono::milliseconds timeout) {
  cpprun::dist::native(*this)->setTimeout(timeout);
}

Store make_tcp_store(const std::string& host, int port, int world_size, bool is_master,
                     std::chrono::milliseconds timeout, bool wait_for_workers) {
  check_port(host, port, is_master);
  if (!is_master) {
    const std::string why = wait_for_listener(host, port, timeout);
    if (!why.empty()) {
      throw DistTimeoutError(place(host, port) + ": no server accepted a connection within " +
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

Store make_hash_store() { return wrap(c10::make_intrusive<c10d::HashStore>()); }

Store make_prefix_store(const std::string& prefix, const Store& store) {
  return wrap(c10::make_intrusive<c10d::PrefixStore>(prefix, native(store)));
}

}  // namespace cpprun::dist
