// Handles of c10d key-value stores: TCPStore, FileStore, HashStore, PrefixStore.
//
// A Store is a cheap copy of a shared handle. Calls block up to the store's timeout; all may be
// called from any thread. Errors: DistTimeoutError, DistNetworkError, DistBackendError.
// Python counterpart: torch.distributed.Store. `cpprun::worker::StoreClient` is the one without
// LibTorch.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cpprun::dist {

class Store {
 public:
  struct Native;  // a c10d::Store; dist/native.hpp

  Store() = default;  // none
  explicit Store(std::shared_ptr<Native> native) : native_(std::move(native)) {}
  explicit operator bool() const { return native_ != nullptr; }

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  // waits for the key
  int64_t add(const std::string& key, int64_t amount);
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  void wait(const std::vector<std::string>& keys);
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  bool check(const std::vector<std::string>& keys);
  bool delete_key(const std::string& key);
  int64_t num_keys();
  void append(const std::string& key, const std::string& value);
  std::vector<std::string> multi_get(const std::vector<std::string>& keys);
  void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values);
  void set_timeout(std::chrono::milliseconds timeout);

  const std::shared_ptr<Native>& native() const { return native_; }

 private:
  std::shared_ptr<Native> native_;
};

inline constexpr std::chrono::milliseconds kStoreTimeout{300'000};  // torch's default

// A client; with `is_master` the server as well (port 0: any, see tcp_store_port). `world_size` -1:
// not known. `wait_for_workers`: the master returns when all have connected.
Store make_tcp_store(const std::string& host, int port, int world_size = -1, bool is_master = false,
                     std::chrono::milliseconds timeout = kStoreTimeout,
                     bool wait_for_workers = true);
int tcp_store_port(const Store& store);
// Shared through a file that all ranks reach; the last of `world_size` users removes it.
Store make_file_store(const std::string& path, int world_size = -1);
Store make_hash_store();  // within this process
Store make_prefix_store(const std::string& prefix, const Store& store);

}  // namespace cpprun::dist
