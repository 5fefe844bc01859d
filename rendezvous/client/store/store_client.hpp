// A blocking client of torch's TCPStore protocol, without LibTorch: talks to cpprun's store and to
// torch's own server (2.2 and newer, libuv or not). Needs no agent.
//
// One connection, one thread at a time. Every call has the client's timeout unless it takes one. A
// key that does not come in time is an error (Timeout) and nothing else: the wait is cancelled and
// the client goes on. An answer that is missing, cut off or senseless (Timeout, Network, Protocol)
// closes the client, and every later call says why. Keys have up to limits::kStoreKeyBytes with
// their prefix, values up to limits::kStoreValueBytes (torch's libuv server: 8 MiB, and it closes
// the connection above that), lists up to limits::kStoreListItems; beyond: BadValue. The wire is
// described in docs/protocol.md; Python counterpart: torch.distributed.TCPStore.
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
  // Counts itself in, as torch's clients with a world size do: a Python rank 0 that waits for its
  // workers waits for that.
  bool checks_in = false;
};

class StoreClient {
 public:
  // `address`: "host:port", IPv6 in brackets. Tries all addresses of the host, again and again
  // until connect_timeout, at least once. A name's look-up has the resolver's own time limit.
  // Errors: BadValue for the address; else Timeout, with how often was tried for how long, and what
  // happened last.
  static Result<StoreClient> connect(const std::string& address, StoreClientOptions options = {});
  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) noexcept;
  ~StoreClient();

  // Has no answer: what is wrong with it, the next call meets.
  Status set(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key);  // waits for the key
  // The sum. A missing key counts as 0; a value that is no number makes the server close.
  Result<int64_t> add(std::string_view key, int64_t amount);
  // The value afterwards: `desired` if the value was `expected`, or missing and `expected` empty.
  // For a missing key and another expectation `expected` comes back, and still there is no key (as
  // torch's servers have it).
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired);
  // Until all keys are there (a queue with an item counts). No keys: at once.
  Status wait(const std::vector<std::string>& keys);
  Status wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  Result<bool> check(const std::vector<std::string>& keys);  // all there; true for no keys
  Result<bool> delete_key(std::string_view key);             // whether it was there
  Result<int64_t> num_keys();  // on the whole server: other prefixes too
  Status append(std::string_view key, std::string_view value);  // no answer, as set
  Result<std::vector<std::string>> multi_get(const std::vector<std::string>& keys);  // waits
  Status multi_set(const std::vector<std::pair<std::string, std::string>>& pairs);
  // Queues: cpprun's store and torch's libuv server of 2.8 and newer; others close the connection.
  Status queue_push(std::string_view key, std::string_view value);
  // The oldest item. Empty: waits, or with `block` false an error (Refused).
  Result<std::string> queue_pop(std::string_view key, bool block = true);
  Result<int64_t> queue_len(std::string_view key);
  // Returns when `world_size` clients have called it with this key (any server; made of add and
  // wait, so that old servers do as well). The key can be used again by the same clients, as long
  // as no call on it fails: a client that has timed out stays counted. The error (Timeout) says how
  // many came.
  Status barrier(std::string_view key, int world_size);

 private:
  struct Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun::worker
