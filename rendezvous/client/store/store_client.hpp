/// @file
/// StoreClient: a blocking client of torch's TCPStore protocol without LibTorch. Works with
/// cpprun's store and torch's server (2.2 and newer, libuv or not). Needs no agent. One connection,
/// one thread at a time. Every call has the client's timeout unless it takes one. If a key does not
/// arrive in time, the call fails with Timeout, and the client cancels the wait and stays usable. A
/// missing, truncated or invalid reply (Timeout, Network, Protocol) closes the client, and every
/// later call returns that error. Keys have up to limits::kStoreKeyBytes with their prefix, values
/// up to limits::kStoreValueBytes (torch's libuv server: 8 MiB, and it closes the connection above
/// that), lists up to limits::kStoreListItems; beyond: BadValue. docs/protocol.md describes the
/// wire format; Python counterpart: torch.distributed.TCPStore.
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

/// Options of StoreClient::connect().
struct StoreClientOptions {
  std::chrono::milliseconds timeout{300'000};         ///< of each call
  std::chrono::milliseconds connect_timeout{60'000};  ///< the server may not listen yet
  std::string prefix;                                 ///< before every key, with "/" between
  /// Increments torch's worker count, as torch's clients with a world size do: a Python rank 0 with
  /// wait_for_workers waits for that.
  bool checks_in = false;
};

/// A blocking client of torch's TCPStore protocol, without LibTorch. One connection; one thread at
/// a time.
class StoreClient {
 public:
  /// `address`: "host:port", IPv6 in brackets. Tries all addresses of the host repeatedly until
  /// connect_timeout, at least once. Name resolution has the resolver's own time limit. Errors:
  /// BadValue for the address; otherwise Timeout with the number of attempts, the duration and the
  /// last error.
  static Result<StoreClient> connect(const std::string& address, StoreClientOptions options = {});
  /// @{
  /// Move the connection.
  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) noexcept;
  /// @}
  ~StoreClient();

  /// Has no reply: the next call reports its errors.
  Status set(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key);  ///< waits for the key
  /// Returns the sum. A missing key counts as 0; if the value is no number, the server closes the
  /// connection.
  Result<int64_t> add(std::string_view key, int64_t amount);
  /// Returns the value afterwards: `desired` if the value was `expected`, or if the key was missing
  /// and `expected` is empty. For a missing key and another expectation it returns `expected` and
  /// creates no key, as torch's servers do.
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired);
  /// @{
  /// Waits until all keys exist (a queue with an item counts): as long as the client's timeout, or
  /// `timeout`. Returns at once for no keys.
  Status wait(const std::vector<std::string>& keys);
  Status wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  /// @}
  Result<bool> check(const std::vector<std::string>& keys);  ///< all exist; true for no keys
  Result<bool> delete_key(std::string_view key);             ///< whether it existed
  Result<int64_t> num_keys();                                ///< of the whole server, all prefixes
  Status append(std::string_view key, std::string_view value);  ///< no reply, as set
  Result<std::vector<std::string>> multi_get(const std::vector<std::string>& keys);  ///< waits
  /// Sets each key to its value. No reply, as set.
  Status multi_set(const std::vector<std::pair<std::string, std::string>>& pairs);
  /// Adds an item at the end of a queue. Queues need cpprun's store, or torch's libuv server of 2.8
  /// and newer; others close the connection.
  Status queue_push(std::string_view key, std::string_view value);
  /// Returns the oldest item. If the queue is empty: waits, or fails with Refused if `block` is
  /// false.
  Result<std::string> queue_pop(std::string_view key, bool block = true);
  /// Number of items of a queue.
  Result<int64_t> queue_len(std::string_view key);
  /// Returns when `world_size` clients have called it with this key. Uses only add and wait, so old
  /// servers work. The same clients can reuse the key as long as no call on it fails: a client that
  /// timed out stays counted. The error (Timeout) names the number of arrived clients.
  Status barrier(std::string_view key, int world_size);

 private:
  class Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun::worker
