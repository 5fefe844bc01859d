#include "rendezvous/store/store.hpp"

#include <algorithm>
#include <charconv>

namespace cpprun {
namespace {

using tcpstore::Command;
using tcpstore::Op;

// Kinds of change in a reply to a watcher (torch 2.0).
constexpr uint8_t kUpdated = 0;
constexpr uint8_t kCreated = 1;
constexpr uint8_t kDeleted = 2;

// From this size on a value stays in the buffer in which it was received; below, a copy is cheaper
// than the block.
constexpr size_t kAdoptFrom = 1024 * 1024;

// As C's strtoll: leading white space, a sign, digits up to another character. Empty if there are
// no digits or too many.
std::optional<int64_t> leading_number(std::string_view text) {
  size_t start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  bool has_plus = text.front() == '+';
  if (has_plus) text.remove_prefix(1);
  if (has_plus && text.starts_with('-')) return std::nullopt;
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

struct Store::Call {
  SessionId session;
  const Command& command;
  ReplySink& sink;
  const std::shared_ptr<const void>& owner;
  size_t owned_bytes;
};

void Store::apply(SessionId session, const Command& command, ReplySink& sink,
                  const std::shared_ptr<const void>& owner, size_t owned_bytes) {
  Call call{session, command, sink, owner, owned_bytes};
  if (!promised_.empty()) settle_promise(call);
  switch (command.op) {
    case Op::Validate: return;
    case Op::Set: return write(call);
    case Op::CompareSet: return compare_set(call);
    case Op::Get: return get(call, command.key);
    case Op::Add: return add(call);
    case Op::Check: return check(call);
    case Op::Wait: return wait(call);
    case Op::GetNumKeys: return sink.reply_number(session, static_cast<int64_t>(values_.size()));
    case Op::DeleteKey: return remove(call);
    case Op::Append: return append(call);
    case Op::MultiGet:
      for (std::string_view key : command.items) get(call, key);
      return;
    case Op::MultiSet: return multi_set(call);
    case Op::CancelWait:
      blocked_clients_.forget(session);
      return sink.reply_byte(session, tcpstore::kWaitCanceled);
    case Op::Ping: return sink.reply_nonce(session, static_cast<uint32_t>(command.number));
    case Op::QueuePush: return queue_push(call);
    case Op::QueuePop: return queue_pop(call);
    case Op::QueueLen:
      return sink.reply_number(session, static_cast<int64_t>(queue_length(command.key)));
    case Op::ListKeys: return list_keys(call);
    case Op::Barrier: return barrier(call);
    case Op::WatchKey: return watch(call);
  }
}

void Store::session_closed(SessionId session, ReplySink& sink) {
  blocked_clients_.forget(session);
  auto watched = watched_.find(session.value);
  if (watched != watched_.end()) {
    for (const std::string& key : watched->second) {
      auto found = watchers_.find(key);
      if (found == watchers_.end()) continue;
      std::erase(found->second, session);
      if (found->second.empty()) watchers_.erase(found);
    }
    watched_.erase(watched);
  }
  auto promise = promised_.find(session.value);
  if (promise == promised_.end()) return;
  std::string key = std::move(promise->second);
  promised_.erase(promise);
  wake_for_queue(sink, key);
}

// --- plain keys

const Value& Store::put(Call& call, std::string_view key, std::string_view bytes) {
  auto found = values_.find(key);
  bool is_new = found == values_.end();
  if (is_new) found = values_.emplace(std::string(key), Value()).first;
  Value& value = found->second;
  if (!watchers_.empty()) {
    notify_watchers(call.sink, key, is_new ? kCreated : kUpdated, value.view(), bytes);
  }
  keep(call, value, bytes);
  wake(call.sink, key);
  return value;
}

void Store::keep(const Call& call, Value& value, std::string_view bytes) {
  bool is_worth_it = bytes.size() >= kAdoptFrom && bytes.size() >= call.owned_bytes / 2;
  if (call.owner && is_worth_it) {
    value.adopt({call.owner, bytes});
  } else {
    value.assign(bytes);
  }
}

void Store::write(Call& call) { put(call, call.command.key, call.command.value); }

void Store::append(Call& call) {
  auto found = values_.find(call.command.key);
  if (found == values_.end()) return write(call);
  Value& value = found->second;
  bool is_watched = !watchers_.empty() && watchers_.contains(call.command.key);
  std::string before(is_watched ? value.view() : std::string_view());
  value.append(call.command.value);
  if (is_watched) notify_watchers(call.sink, call.command.key, kUpdated, before, value.view());
  wake(call.sink, call.command.key);
}

void Store::multi_set(Call& call) {
  for (auto item = call.command.items.begin(); item != call.command.items.end(); ++item) {
    std::string_view key = *item;
    ++item;
    put(call, key, *item);
  }
}

void Store::compare_set(Call& call) {
  const Command& command = call.command;
  auto found = values_.find(command.key);
  if (found == values_.end()) {
    // torch's server echoes the expected value here, and callers rely on it.
    if (!command.expected.empty()) return call.sink.reply_bytes(call.session, command.expected);
    return call.sink.reply_value(call.session, put(call, command.key, command.value));
  }
  if (found->second.view() != command.expected) {
    wake(call.sink, command.key);
    return call.sink.reply_value(call.session, found->second);
  }
  call.sink.reply_value(call.session, put(call, command.key, command.value));
}

void Store::get(Call& call, std::string_view key) {
  auto found = values_.find(key);
  if (found == values_.end()) return call.sink.reply_bytes(call.session, {});
  call.sink.reply_value(call.session, found->second);
}

std::optional<int64_t> Store::count_up(Call& call, std::string_view key, int64_t delta) {
  auto found = values_.find(key);
  int64_t before = 0;
  if (found != values_.end()) {
    std::optional<int64_t> number = leading_number(found->second.view());
    if (!number) {
      call.sink.refuse(call.session, "the value to add to is not a number");
      return std::nullopt;
    }
    before = *number;
  }
  return wrapping_sum(before, delta);
}

void Store::add(Call& call) {
  std::optional<int64_t> sum = count_up(call, call.command.key, call.command.number);
  if (!sum) return;
  char text[24];
  auto end = std::to_chars(text, text + sizeof text, *sum).ptr;
  put(call, call.command.key, {text, static_cast<size_t>(end - text)});
  call.sink.reply_number(call.session, *sum);
}

void Store::remove(Call& call) {
  auto found = values_.find(call.command.key);
  if (found == values_.end()) return call.sink.reply_number(call.session, 0);
  if (!watchers_.empty()) {
    notify_watchers(call.sink, call.command.key, kDeleted, found->second.view(), {});
  }
  values_.erase(found);
  call.sink.reply_number(call.session, 1);
}

void Store::list_keys(Call& call) {
  std::vector<std::string_view> names;
  names.reserve(values_.size());
  for (const auto& [key, value] : values_) names.push_back(key);
  std::sort(names.begin(), names.end());
  call.sink.reply_number(call.session, static_cast<int64_t>(names.size()));
  for (std::string_view key : names) call.sink.reply_bytes(call.session, key);
}

// --- waiting

bool Store::is_present(std::string_view key) const {
  return values_.find(key) != values_.end() || queue_length(key) > 0;
}

void Store::check(Call& call) {
  bool is_ready = true;
  for (std::string_view key : call.command.items) is_ready = is_ready && is_present(key);
  call.sink.reply_byte(call.session, is_ready ? tcpstore::kReady : tcpstore::kNotReady);
}

void Store::wait(Call& call) {
  bool is_waiting = false;
  blocked_clients_.forget(call.session);
  for (std::string_view key : call.command.items) {
    if (is_present(key)) continue;
    if (!is_waiting) blocked_clients_.begin(call.session, BlockedClients::Kind::Keys);
    is_waiting = true;
    blocked_clients_.add(key);
  }
  if (!is_waiting) call.sink.reply_byte(call.session, tcpstore::kReady);
}

// The count is an ordinary key, so a SET or ADD on it releases the barrier's waiters too. An
// arrival other than the last must not: it only wakes plain waits for the key.
void Store::barrier(Call& call) {
  std::string_view key = call.command.key;
  std::optional<int64_t> count = count_up(call, key, 1);
  if (!count) return;
  blocked_clients_.forget(call.session);
  values_.insert_or_assign(std::string(key), Value(std::to_string(*count)));
  if (*count >= call.command.number) {
    call.sink.reply_byte(call.session, tcpstore::kReady);
    return wake(call.sink, key);
  }
  if (*count == 1) {
    for (SessionId other : blocked_clients_.arrived(key, BlockedClients::Kind::Keys)) {
      call.sink.reply_byte(other, tcpstore::kReady);
    }
  }
  blocked_clients_.begin(call.session, BlockedClients::Kind::Barrier);
  blocked_clients_.add(key);
}

void Store::wake(ReplySink& sink, std::string_view key) {
  if (blocked_clients_.empty()) return;
  for (SessionId session : blocked_clients_.arrived(key))
    sink.reply_byte(session, tcpstore::kReady);
}

// --- queues

size_t Store::queue_length(std::string_view key) const {
  if (queues_.empty()) return 0;
  auto found = queues_.find(key);
  return found == queues_.end() ? 0 : found->second.size();
}

void Store::queue_push(Call& call) {
  auto found = queues_.find(call.command.key);
  if (found == queues_.end()) {
    found = queues_.emplace(std::string(call.command.key), std::deque<Value>()).first;
  }
  keep(call, found->second.emplace_back(), call.command.value);
  wake_for_queue(call.sink, call.command.key);
}

void Store::queue_pop(Call& call) {
  auto found = queues_.find(call.command.key);
  if (found == queues_.end()) return call.sink.reply_number(call.session, 0);
  std::deque<Value>& items = found->second;
  call.sink.reply_number(call.session, static_cast<int64_t>(items.size()));
  call.sink.reply_value(call.session, items.front());
  items.pop_front();
  if (items.empty()) queues_.erase(found);
}

// Wakes one waiter if there is an item, and promises the item to it.
void Store::wake_for_queue(ReplySink& sink, std::string_view key) {
  if (blocked_clients_.empty() || queue_length(key) == 0) return;
  std::optional<SessionId> session = blocked_clients_.arrived_for_one(key);
  if (!session) return;
  promised_.insert_or_assign(session->value, std::string(key));
  sink.reply_byte(*session, tcpstore::kReady);
}

// A session to which an item was promised sends a command. If that does not pop the item (its wait
// may have timed out at the same moment), the next waiter is woken; otherwise it would sleep beside
// a filled queue.
void Store::settle_promise(Call& call) {
  auto promise = promised_.find(call.session.value);
  if (promise == promised_.end()) return;
  std::string key = std::move(promise->second);
  promised_.erase(promise);
  bool is_fetched = call.command.op == Op::QueuePop && call.command.key == key;
  if (!is_fetched) wake_for_queue(call.sink, key);
}

// --- watching (torch 2.0)

void Store::watch(Call& call) {
  auto found = watchers_.find(call.command.key);
  if (found == watchers_.end()) {
    found = watchers_.emplace(std::string(call.command.key), std::vector<SessionId>()).first;
  }
  std::vector<SessionId>& sessions = found->second;
  if (std::find(sessions.begin(), sessions.end(), call.session) == sessions.end()) {
    sessions.push_back(call.session);
    watched_[call.session.value].emplace_back(call.command.key);
  }
  call.sink.reply_byte(call.session, tcpstore::kWatching);
}

void Store::notify_watchers(ReplySink& sink, std::string_view key, uint8_t change,
                            std::string_view before, std::string_view after) {
  auto found = watchers_.find(key);
  if (found == watchers_.end()) return;
  for (SessionId session : found->second) {
    sink.reply_byte(session, change);
    sink.reply_bytes(session, key);
    sink.reply_bytes(session, before);
    sink.reply_bytes(session, after);
  }
}

}  // namespace cpprun
