#include "rendezvous/client/store/store_client.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "common/check.hpp"
#include "common/endpoint.hpp"
#include "common/limits/store.hpp"
#include "common/text.hpp"
#include "rendezvous/client/store/deadline.hpp"
#include "rendezvous/client/store/store_link.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_reply.hpp"

namespace cpprun::worker {

using std::chrono::milliseconds;
using tcpstore::Op;

namespace {

constexpr std::string_view kCheckIn = "init/";  // torch's key; no slash in front
constexpr size_t kKeysNamed = 8;                // keys listed in an error
constexpr size_t kKeyShown = 64;                // bytes shown of each
constexpr size_t kRequestKept = 64 * 1024;      // memory kept for the next request

Error too_long(std::string_view what, size_t size, size_t limit) {
  return Error{ErrorKind::BadValue, std::string(what) + " has " + std::to_string(size) +
                                        " bytes, a store takes at most " + std::to_string(limit)};
}

Status check_value(std::string_view value) {
  if (value.size() <= limits::kStoreValueBytes) return {};
  return too_long("the value", value.size(), limits::kStoreValueBytes);
}

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// torch's text, so that a search for it works.
Error wait_timeout(const std::vector<std::string>& keys, milliseconds timeout) {
  std::vector<std::string> named = keys;
  named.resize(std::min(keys.size(), kKeysNamed));
  std::string text = "wait timeout after " + std::to_string(timeout.count()) +
                     "ms, keys: " + text::join(named, ", ");
  if (keys.size() > kKeysNamed) {
    text += " and " + std::to_string(keys.size() - kKeysNamed) + " more";
  }
  return Error{ErrorKind::Timeout, text};
}

// The deadline of the reply after a wait: at least a moment, even if the wait used up the time.
Deadline answer_by(Deadline until) { return std::max(until, after(limits::kStoreReplyTimeout)); }

Result<size_t> value_size(tcpstore::Head head) {
  return tcpstore::length_of(head, limits::kStoreValueBytes);
}

Error never_reached(const Endpoint& endpoint, int tries, Clock::duration tried_for,
                    const std::string& last) {
  return Error{ErrorKind::Timeout, "no store at " + to_string(endpoint) + ": tried " +
                                       std::to_string(tries) + (tries == 1 ? " time" : " times") +
                                       " in " + text::seconds(tried_for) + "; last: " + last +
                                       "; check the address, or allow a longer connect_timeout"};
}

}  // namespace

// Writes requests and reads replies over a StoreLink, one at a time.
class StoreClient::Impl {
 public:
  Impl(StoreLink link, const std::string& prefix, milliseconds timeout)
      : link_(std::move(link)),
        prefix_(prefix.empty() ? "/" : "/" + prefix + "/"),
        timeout_(timeout) {}

  milliseconds timeout() const { return timeout_; }
  Deadline deadline() const { return after(timeout_); }

  // Uses GETNUMKEYS, to which every version replies, and only at a port that serves a store. PING
  // needs torch 2.5, and ports without a store reply to it too.
  Status greet(bool checks_in, Deadline until) {
    tcpstore::put_validate(request_);
    if (Status asked = ask_bare(Op::GetNumKeys, until); !asked) return asked;
    Result<int64_t> keys = read_number(until);
    if (!keys) return keys.error();
    if (*keys < 0) return Error{ErrorKind::Protocol, "it has a negative number of keys: no store"};
    if (!checks_in) return {};
    tcpstore::put_number(request_, Op::Add, kCheckIn, 1);
    if (Status asked = send(until); !asked) return asked;
    Result<int64_t> clients = read_number(until);
    return clients ? Status() : clients.error();
  }

  // Requests. Each fails with BadValue, before it sends anything, if a key, value or list is too
  // long.

  Result<std::string> wire_key(std::string_view key) const {
    std::string whole = prefix_;
    whole += key;
    if (whole.size() <= limits::kStoreKeyBytes) return whole;
    return too_long("the key '" + std::string(key.substr(0, kKeyShown)) + "...' with its prefix",
                    whole.size(), limits::kStoreKeyBytes);
  }

  Result<std::vector<std::string>> wire_keys(const std::vector<std::string>& keys) const {
    if (keys.size() > limits::kStoreListItems) {
      return Error{ErrorKind::BadValue, std::to_string(keys.size()) +
                                            " keys in one call, a store takes at most " +
                                            std::to_string(limits::kStoreListItems)};
    }
    std::vector<std::string> all;
    all.reserve(keys.size());
    for (const std::string& key : keys) {
      Result<std::string> one = wire_key(key);
      if (!one) return one.error();
      all.push_back(std::move(*one));
    }
    return all;
  }

  Status send(Deadline until) {
    Status sent = link_.send(request_, until);
    request_.clear();
    if (request_.capacity() > kRequestKept) request_ = std::string();
    return sent;
  }

  Status ask_bare(Op op, Deadline until) {
    tcpstore::put_bare(request_, op);
    return send(until);
  }

  // `put` appends the request to its first argument; the second one is the key on the wire.
  Status ask(std::string_view key, std::initializer_list<std::string_view> values, Deadline until,
             auto put) {
    Result<std::string> whole = wire_key(key);
    if (!whole) return whole.error();
    for (std::string_view value : values) {
      if (Status fits = check_value(value); !fits) return fits;
    }
    put(request_, *whole);
    return send(until);
  }

  Status write(Op op, std::string_view key, std::string_view value) {
    return ask(key, {value}, deadline(), [&](std::string& request, const std::string& whole) {
      tcpstore::put_write(request, op, whole, value);
    });
  }

  Status ask_key(Op op, std::string_view key, Deadline until) {
    return ask(key, {}, until, [op](std::string& request, const std::string& whole) {
      tcpstore::put_key(request, op, whole);
    });
  }

  Status ask_keys(Op op, const std::vector<std::string>& keys, Deadline until) {
    Result<std::vector<std::string>> all = wire_keys(keys);
    if (!all) return all.error();
    tcpstore::put_keys(request_, op, views_of(*all));
    return send(until);
  }

  Status ask_multi_set(const std::vector<std::pair<std::string, std::string>>& pairs,
                       Deadline until) {
    std::vector<std::string> keys;
    std::vector<std::string_view> values;
    size_t size = 0;
    for (const auto& [key, value] : pairs) {
      if (Status fits = check_value(value); !fits) return fits;
      keys.push_back(key);
      values.push_back(value);
      size += prefix_.size() + key.size() + value.size() + 2 * sizeof(uint64_t);
    }
    Result<std::vector<std::string>> all = wire_keys(keys);
    if (!all) return all.error();
    if (size > limits::kStoreCommandBytes - 2 * sizeof(uint64_t)) {
      return too_long("what is to be set in one call", size, limits::kStoreCommandBytes);
    }
    tcpstore::put_multi_set(request_, views_of(*all), values);
    return send(until);
  }

  Result<std::string> read_value(Deadline until) {
    Result<size_t> size = read_with(&value_size, until);
    if (!size) return size.error();
    return link_.read_string(*size, until);
  }

  Result<int64_t> read_number(Deadline until) {
    std::array<uint8_t, 8> head{};
    if (Status got = link_.read(head, until); !got) return got.error();
    return tcpstore::number_of(head);
  }

  // Reads a number and converts it with `judge`.
  template <class T>
  Result<T> read_with(Result<T> (*judge)(tcpstore::Head), Deadline until) {
    std::array<uint8_t, 8> head{};
    if (Status got = link_.read(head, until); !got) return got.error();
    Result<T> judged = judge(head);
    if (!judged) return link_.close(judged.error());
    return judged;
  }

  Result<bool> read_check(Deadline until) {
    uint8_t byte = 0;
    if (Status got = link_.read({&byte, 1}, until); !got) return got.error();
    Result<bool> present = tcpstore::is_present(byte);
    if (!present) return link_.close(present.error());
    return present;
  }

  Status read_wait(tcpstore::WaitReply& reply, Deadline until) {
    while (!reply.is_over()) {
      uint8_t byte = 0;
      if (Status got = link_.read({&byte, 1}, until); !got) return got;
      if (Status fits = reply.on_byte(byte); !fits) return link_.close(fits.error());
    }
    return {};
  }

  Status cancel(tcpstore::WaitReply& reply, Deadline until) {
    if (Status asked = ask_bare(Op::CancelWait, answer_by(until)); !asked) return asked;
    reply.cancel();
    return read_wait(reply, answer_by(until));
  }

  Status wait(const std::vector<std::string>& keys, milliseconds timeout, Deadline until) {
    if (keys.empty()) return {};
    if (Status asked = ask_keys(Op::Wait, keys, until); !asked) return asked;
    tcpstore::WaitReply reply;
    Result<bool> is_answered = link_.has_input(until);
    if (!is_answered) return is_answered.error();
    Status over = *is_answered ? read_wait(reply, answer_by(until)) : cancel(reply, until);
    if (!over) return over;
    return reply.is_ready() ? Status() : wait_timeout(keys, timeout);
  }

 private:
  StoreLink link_;
  std::string prefix_;  // including slashes
  milliseconds timeout_;
  std::string request_;  // buffer of the next request
};

StoreClient::StoreClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreClient::StoreClient(StoreClient&&) noexcept = default;
StoreClient& StoreClient::operator=(StoreClient&&) noexcept = default;
StoreClient::~StoreClient() = default;

Result<StoreClient> StoreClient::connect(const std::string& address, StoreClientOptions options) {
  Result<Endpoint> endpoint = parse_endpoint(address, std::nullopt);
  if (!endpoint) return endpoint.error();
  const Deadline start = Clock::now();
  const Deadline until = after(options.connect_timeout);
  Duration pause = limits::kStoreConnectRetryFirst;
  std::string trouble;  // of the last attempt that the deadline did not cut short
  for (int tries = 1;; ++tries) {
    std::string why;
    if (Result<UniqueFd> socket = dial(*endpoint, until)) {
      auto impl = std::make_unique<Impl>(StoreLink(std::move(*socket), to_string(*endpoint)),
                                         options.prefix, options.timeout);
      Status greeted = impl->greet(options.checks_in, until);
      if (greeted) return StoreClient(std::move(impl));
      why = greeted.error().text;
    } else {
      why = socket.error().text;
    }
    if (trouble.empty() || Clock::now() < until) trouble = std::move(why);
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
  const auto put = [amount](std::string& request, const std::string& whole) {
    tcpstore::put_number(request, Op::Add, whole, amount);
  };
  if (Status asked = impl_->ask(key, {}, until, put); !asked) return asked.error();
  return impl_->read_number(until);
}

Result<std::string> StoreClient::compare_set(std::string_view key, std::string_view expected,
                                             std::string_view desired) {
  const Deadline until = impl_->deadline();
  const auto put = [&](std::string& request, const std::string& whole) {
    tcpstore::put_compare_set(request, whole, expected, desired);
  };
  if (Status asked = impl_->ask(key, {expected, desired}, until, put); !asked) return asked.error();
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
