/// @file
/// Handles of c10d key-value stores: TCPStore, FileStore, HashStore, PrefixStore. Python
/// counterpart: torch.distributed.Store and its subclasses. Without LibTorch:
/// cpprun::worker::StoreClient.
///
/// A Store is a shared handle, cheap to copy. Threads: any. Errors: DistTimeoutError after the
/// store's timeout, DistNetworkError, DistBackendError; DistArgumentError for an empty handle.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cpprun::dist {

/// A shared handle of a key-value store of c10d. Keys are visible to all processes that reach the
/// store; values are bytes. Python counterpart: torch.distributed.Store.
class Store {
 public:
  struct Native;  ///< holds a c10d::Store; dist/native.hpp

  Store() = default;  ///< empty
  /// For the SDK: a handle of `native`.
  explicit Store(std::shared_ptr<Native> native) : native_(std::move(native)) {}
  /// False for an empty handle.
  explicit operator bool() const { return native_ != nullptr; }

  /// Sets `key`, whether it exists or not.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  ///< waits until the key exists
  /// Adds `amount` to the counter at `key` (missing: 0) and returns the sum.
  int64_t add(const std::string& key, int64_t amount);
  /// Sets `key` to `desired` if its value is `expected` ("": the key is missing). Returns its value
  /// afterwards; `expected` if the key is missing.
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  /// @{
  /// Waits until all keys exist: as long as the store's timeout, or `timeout`.
  void wait(const std::vector<std::string>& keys);
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  /// @}
  /// True if all keys exist; does not wait.
  bool check(const std::vector<std::string>& keys);
  /// True if the key existed.
  bool delete_key(const std::string& key);
  /// Number of keys in the store. A TCP store also counts the key that c10d itself sets.
  int64_t num_keys();
  /// Appends `value` to the value of `key` (missing: empty).
  void append(const std::string& key, const std::string& value);
  /// Waits until all keys exist; returns their values in the order of `keys`.
  std::vector<std::string> multi_get(const std::vector<std::string>& keys);
  /// Sets keys[i] to values[i]; both lists have the same length.
  void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values);
  /// Sets the timeout of every later call that waits.
  void set_timeout(std::chrono::milliseconds timeout);

  /// For the SDK.
  const std::shared_ptr<Native>& native() const { return native_; }

 private:
  std::shared_ptr<Native> native_;
};

inline constexpr std::chrono::milliseconds kStoreTimeout{300'000};  ///< torch's default

/// A client of the TCPStore at host:port. `is_master`: also starts the server in this process (port
/// 0: any free port, see tcp_store_port). `world_size` -1: unknown. `wait_for_workers`: the master
/// returns when `world_size` clients have connected.
Store make_tcp_store(const std::string& host, int port, int world_size = -1, bool is_master = false,
                     std::chrono::milliseconds timeout = kStoreTimeout,
                     bool wait_for_workers = true);
/// The port of the store's server, also where make_tcp_store() was given port 0. DistArgumentError
/// for a store that is no TCP store.
int tcp_store_port(const Store& store);
/// A store in a file that all ranks can reach; the last of `world_size` users removes the file.
Store make_file_store(const std::string& path, int world_size = -1);
Store make_hash_store();  ///< for threads of this process
/// A view of `store` in which each key begins with `prefix` and "/".
Store make_prefix_store(const std::string& prefix, const Store& store);

}  // namespace cpprun::dist
