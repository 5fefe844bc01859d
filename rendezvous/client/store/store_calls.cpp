#include "rendezvous/client/store/store_calls.hpp"

#include <algorithm>

#include "common/limits/store.hpp"
#include "common/text.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun::worker {
namespace {

using tcpstore::Op;

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
Error wait_timeout(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  std::vector<std::string> named(
      keys.begin(), keys.begin() + static_cast<ptrdiff_t>(std::min(keys.size(), kKeysNamed)));
  std::string text = "wait timeout after " + std::to_string(timeout.count()) +
                     "ms, keys: " + text::join(named, ", ");
  if (keys.size() > kKeysNamed) {
    text += " and " + std::to_string(keys.size() - kKeysNamed) + " more";
  }
  return Error{ErrorKind::Timeout, text};
}

}  // namespace

Deadline answer_by(Deadline until) { return std::max(until, after(limits::kStoreReplyTimeout)); }

StoreCalls::StoreCalls(StoreLink link, std::string prefix, std::chrono::milliseconds timeout)
    : link_(std::move(link)),
      prefix_(prefix.empty() ? "/" : "/" + std::move(prefix) + "/"),
      timeout_(timeout) {}

// Uses GETNUMKEYS, to which every version replies, and only at a port that serves a store. PING
// needs torch 2.5, and ports without a store reply to it too.
Status StoreCalls::greet(bool checks_in, Deadline until) {
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

// ---------------------------------------------------------------- requests

Result<std::string> StoreCalls::wire_key(std::string_view key) const {
  std::string whole = prefix_;
  whole += key;
  if (whole.size() <= limits::kStoreKeyBytes) return whole;
  return too_long("the key '" + std::string(key.substr(0, kKeyShown)) + "...' with its prefix",
                  whole.size(), limits::kStoreKeyBytes);
}

Result<std::vector<std::string>> StoreCalls::wire_keys(const std::vector<std::string>& keys) const {
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

Status StoreCalls::send(Deadline until) {
  Status sent = link_.send(request_, until);
  request_.clear();
  if (request_.capacity() > kRequestKept) request_ = std::string();
  return sent;
}

Status StoreCalls::write(Op op, std::string_view key, std::string_view value) {
  Result<std::string> whole = wire_key(key);
  if (!whole) return whole.error();
  if (Status fits = check_value(value); !fits) return fits;
  tcpstore::put_write(request_, op, *whole, value);
  return send(deadline());
}

Status StoreCalls::ask_bare(Op op, Deadline until) {
  tcpstore::put_bare(request_, op);
  return send(until);
}

Status StoreCalls::ask_key(Op op, std::string_view key, Deadline until) {
  Result<std::string> whole = wire_key(key);
  if (!whole) return whole.error();
  tcpstore::put_key(request_, op, *whole);
  return send(until);
}

Status StoreCalls::ask_number(Op op, std::string_view key, int64_t number, Deadline until) {
  Result<std::string> whole = wire_key(key);
  if (!whole) return whole.error();
  tcpstore::put_number(request_, op, *whole, number);
  return send(until);
}

Status StoreCalls::ask_compare_set(std::string_view key, std::string_view expected,
                                   std::string_view desired, Deadline until) {
  Result<std::string> whole = wire_key(key);
  if (!whole) return whole.error();
  if (Status fits = check_value(expected); !fits) return fits;
  if (Status fits = check_value(desired); !fits) return fits;
  tcpstore::put_compare_set(request_, *whole, expected, desired);
  return send(until);
}

Status StoreCalls::ask_keys(Op op, const std::vector<std::string>& keys, Deadline until) {
  Result<std::vector<std::string>> all = wire_keys(keys);
  if (!all) return all.error();
  tcpstore::put_keys(request_, op, views_of(*all));
  return send(until);
}

Status StoreCalls::ask_multi_set(const std::vector<std::pair<std::string, std::string>>& pairs,
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

// ---------------------------------------------------------------- replies

Result<std::string> StoreCalls::read_value(Deadline until) {
  std::array<uint8_t, 8> head{};
  if (Status got = link_.read(head, until); !got) return got.error();
  Result<size_t> size = tcpstore::length_of(head, limits::kStoreValueBytes);
  if (!size) return link_.close(size.error());
  return link_.read_string(*size, until);
}

Result<int64_t> StoreCalls::read_number(Deadline until) {
  std::array<uint8_t, 8> head{};
  if (Status got = link_.read(head, until); !got) return got.error();
  return tcpstore::number_of(head);
}

Result<bool> StoreCalls::read_check(Deadline until) {
  uint8_t byte = 0;
  if (Status got = link_.read({&byte, 1}, until); !got) return got.error();
  Result<bool> present = tcpstore::is_present(byte);
  if (!present) return link_.close(present.error());
  return present;
}

Status StoreCalls::read_wait(tcpstore::WaitReply& reply, Deadline until) {
  while (!reply.is_over()) {
    uint8_t byte = 0;
    if (Status got = link_.read({&byte, 1}, until); !got) return got;
    if (Status fits = reply.on_byte(byte); !fits) return link_.close(fits.error());
  }
  return {};
}

Status StoreCalls::cancel(tcpstore::WaitReply& reply, Deadline until) {
  if (Status asked = ask_bare(Op::CancelWait, answer_by(until)); !asked) return asked;
  reply.cancel();
  return read_wait(reply, answer_by(until));
}

Status StoreCalls::wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout,
                        Deadline until) {
  if (keys.empty()) return {};
  if (Status asked = ask_keys(Op::Wait, keys, until); !asked) return asked;
  tcpstore::WaitReply reply;
  Result<bool> is_answered = link_.has_input(until);
  if (!is_answered) return is_answered.error();
  Status over = *is_answered ? read_wait(reply, answer_by(until)) : cancel(reply, until);
  if (!over) return over;
  return reply.is_ready() ? Status() : wait_timeout(keys, timeout);
}

}  // namespace cpprun::worker
