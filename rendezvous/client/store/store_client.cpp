#include "rendezvous/client/store/store_client.hpp"

#include "common/check.hpp"
#include "common/endpoint.hpp"
#include "common/limits/store.hpp"
#include "common/text.hpp"
#include "rendezvous/client/store/dial.hpp"
#include "rendezvous/client/store/store_calls.hpp"

namespace cpprun::worker {

using std::chrono::milliseconds;
using tcpstore::Op;

struct StoreClient::Impl : StoreCalls {
  using StoreCalls::StoreCalls;
};

StoreClient::StoreClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreClient::StoreClient(StoreClient&&) noexcept = default;
StoreClient& StoreClient::operator=(StoreClient&&) noexcept = default;
StoreClient::~StoreClient() = default;

// ---------------------------------------------------------------- connecting

namespace {

Error never_reached(const Endpoint& endpoint, int tries, Clock::duration tried_for,
                    const std::string& last) {
  return Error{ErrorKind::Timeout, "no store at " + to_string(endpoint) + ": tried " +
                                       std::to_string(tries) + (tries == 1 ? " time" : " times") +
                                       " in " + text::seconds(tried_for) + "; last: " + last +
                                       "; check the address, or allow a longer connect_timeout"};
}

}  // namespace

Result<StoreClient> StoreClient::connect(const std::string& address, StoreClientOptions options) {
  Result<Endpoint> endpoint = parse_endpoint(address, std::nullopt);
  if (!endpoint) return endpoint.error();
  const Deadline start = Clock::now();
  const Deadline until = after(options.connect_timeout);
  Duration pause = limits::kStoreConnectRetryFirst;
  for (int tries = 1;; ++tries) {
    std::string trouble;
    if (Result<UniqueFd> socket = dial(*endpoint, until)) {
      auto impl = std::make_unique<Impl>(StoreLink(std::move(*socket), to_string(*endpoint)),
                                         options.prefix, options.timeout);
      Status greeted = impl->greet(options.checks_in, until);
      if (greeted) return StoreClient(std::move(impl));
      trouble = greeted.error().text;
    } else {
      trouble = socket.error().text;
    }
    if (Clock::now() + pause >= until) {
      return never_reached(*endpoint, tries, Clock::now() - start, trouble);
    }
    poll_until(-1, 0, after(pause));
    pause = std::min(2 * pause, limits::kStoreConnectRetryMax);
  }
}

// ---------------------------------------------------------------- plain keys

Status StoreClient::set(std::string_view key, std::string_view value) {
  return impl_->write(Op::Set, key, value);
}

Status StoreClient::append(std::string_view key, std::string_view value) {
  return impl_->write(Op::Append, key, value);
}

Result<std::string> StoreClient::get(std::string_view key) {
  const Deadline until = impl_->deadline();
  const std::vector<std::string> keys{std::string(key)};
  if (Status came = impl_->wait(keys, impl_->timeout(), until); !came) return came.error();
  if (Status asked = impl_->ask_key(Op::Get, key, until); !asked) return asked.error();
  return impl_->read_value(answer_by(until));
}

Result<int64_t> StoreClient::add(std::string_view key, int64_t amount) {
  const Deadline until = impl_->deadline();
  if (Status asked = impl_->ask_number(Op::Add, key, amount, until); !asked) return asked.error();
  return impl_->read_number(until);
}

Result<std::string> StoreClient::compare_set(std::string_view key, std::string_view expected,
                                             std::string_view desired) {
  const Deadline until = impl_->deadline();
  if (Status asked = impl_->ask_compare_set(key, expected, desired, until); !asked) {
    return asked.error();
  }
  return impl_->read_value(until);
}

Result<bool> StoreClient::delete_key(std::string_view key) {
  const Deadline until = impl_->deadline();
  if (Status asked = impl_->ask_key(Op::DeleteKey, key, until); !asked) return asked.error();
  return impl_->read_with(tcpstore::was_deleted, until);
}

Result<int64_t> StoreClient::num_keys() {
  const Deadline until = impl_->deadline();
  if (Status asked = impl_->ask_bare(Op::GetNumKeys, until); !asked) return asked.error();
  return impl_->read_number(until);
}

// ---------------------------------------------------------------- many keys

Status StoreClient::wait(const std::vector<std::string>& keys) {
  return wait(keys, impl_->timeout());
}

Status StoreClient::wait(const std::vector<std::string>& keys, milliseconds timeout) {
  return impl_->wait(keys, timeout, after(timeout));
}

// Not sent for an empty list: torch's server may read its first key.
Result<bool> StoreClient::check(const std::vector<std::string>& keys) {
  if (keys.empty()) return true;
  const Deadline until = impl_->deadline();
  if (Status asked = impl_->ask_keys(Op::Check, keys, until); !asked) return asked.error();
  return impl_->read_check(until);
}

Result<std::vector<std::string>> StoreClient::multi_get(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  if (keys.empty()) return values;
  const Deadline until = impl_->deadline();
  if (Status came = impl_->wait(keys, impl_->timeout(), until); !came) return came.error();
  if (Status asked = impl_->ask_keys(Op::MultiGet, keys, until); !asked) return asked.error();
  for (size_t i = 0; i < keys.size(); ++i) {
    Result<std::string> value = impl_->read_value(answer_by(until));
    if (!value) return value.error();
    values.push_back(std::move(*value));
  }
  return values;
}

Status StoreClient::multi_set(const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.empty()) return {};
  return impl_->ask_multi_set(pairs, impl_->deadline());
}

// ---------------------------------------------------------------- queues and barrier

Status StoreClient::queue_push(std::string_view key, std::string_view value) {
  return impl_->write(Op::QueuePush, key, value);
}

Result<std::string> StoreClient::queue_pop(std::string_view key, bool block) {
  const Deadline until = impl_->deadline();
  const std::vector<std::string> keys{std::string(key)};
  for (;;) {
    if (block) {
      if (Status came = impl_->wait(keys, impl_->timeout(), until); !came) return came.error();
    }
    if (Status asked = impl_->ask_key(Op::QueuePop, key, until); !asked) return asked.error();
    Result<int64_t> items = impl_->read_with(tcpstore::queue_length_of, answer_by(until));
    if (!items) return items.error();
    if (*items > 0) return impl_->read_value(answer_by(until));
    if (!block) return Error{ErrorKind::Refused, "queue '" + std::string(key) + "' is empty"};
    // Another client was faster.
  }
}

Result<int64_t> StoreClient::queue_len(std::string_view key) {
  const Deadline until = impl_->deadline();
  if (Status asked = impl_->ask_key(Op::QueueLen, key, until); !asked) return asked.error();
  return impl_->read_with(tcpstore::queue_length_of, until);
}

// Counts arrivals; each world_size of them form a generation, whose last arrival sets the
// generation's key. All clients have then passed the previous generation's key, so it is deleted.
Status StoreClient::barrier(std::string_view key, int world_size) {
  CPPRUN_CHECK(world_size > 0);
  Result<int64_t> arrived = add(key, 1);
  if (!arrived) return arrived.error();
  const int64_t generation = (*arrived - 1) / world_size;
  auto gate = [&key](int64_t number) { return std::string(key) + "/" + std::to_string(number); };
  if (*arrived % world_size == 0) {
    if (Status opened = set(gate(generation), ""); !opened) return opened;
    if (generation == 0) return {};
    Result<bool> removed = delete_key(gate(generation - 1));
    return removed ? Status() : removed.error();
  }
  Status came = wait({gate(generation)});
  if (came || came.error().kind != ErrorKind::Timeout) return came;
  Result<int64_t> now = add(key, 0);
  const std::string count = now ? std::to_string(*now - generation * world_size) : "?";
  return Error{ErrorKind::Timeout, "barrier timeout after " +
                                       std::to_string(impl_->timeout().count()) + "ms, key: '" +
                                       std::string(key) + "': " + count + " of " +
                                       std::to_string(world_size) + " came"};
}

}  // namespace cpprun::worker
