// A blocking client of torch's TCPStore protocol, without LibTorch: talks to cpprun's store and to
// torch's own server (2.4 and newer).
//
// One connection, one thread at a time. Every call has the client's timeout unless it takes one;
// after a timeout or a broken connection the client is closed and says so. The wire is described in
// docs/protocol.md; Python counterpart: torch.distributed.TCPStore.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace cpprun::worker {

struct StoreClientOptions {
  std::chrono::milliseconds timeout{300'000};         // of each call
  std::chrono::milliseconds connect_timeout{60'000};  // the server may not listen yet
  std::string prefix;                                 // before every key, with "/" between
};

class StoreClient {
 public:
  // `address`: "host:port", IPv6 in brackets.
  static Result<StoreClient> connect(const std::string& address, StoreClientOptions options = {});
  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) noexcept;
  ~StoreClient();

  Status set(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key);  // waits for the key
  Result<int64_t> add(std::string_view key, int64_t amount);
  // The value afterwards.
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired);
  Status wait(const std::vector<std::string>& keys);
  Status wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  Result<bool> check(const std::vector<std::string>& keys);
  Result<bool> delete_key(std::string_view key);
  Result<int64_t> num_keys();
  Status append(std::string_view key, std::string_view value);
  Result<std::vector<std::string>> multi_get(const std::vector<std::string>& keys);
  Status multi_set(const std::vector<std::pair<std::string, std::string>>& pairs);
  Status queue_push(std::string_view key, std::string_view value);
  Result<std::string> queue_pop(std::string_view key, bool block = true);
  Result<int64_t> queue_len(std::string_view key);
  // Returns when `world_size` clients have called it with this key (any server; made of add and
  // wait, so that old servers do as well). The key can be used again.
  Status barrier(std::string_view key, int world_size);

 private:
  struct Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun::worker
