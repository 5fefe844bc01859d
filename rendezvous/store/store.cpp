#include "rendezvous/store/store.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "common/limits/store.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using tcpstore::Command;
using tcpstore::Op;

// From this size on a value stays in the buffer in which it was received; below, a copy is cheaper
// than the block.
constexpr size_t kAdoptFrom = 1024 * 1024;

// What an entry takes in memory beside its key and value, with the allocator's part.
constexpr size_t kEntryBytes = 192;
constexpr size_t kQueueBytes = 832;  // the first block of a deque has 512 bytes
constexpr size_t kItemBytes = 96;

std::string no_room(const Command& command, std::string_view key, size_t bytes,
                    const MemoryBudget& budget) {
  const auto mib = [](size_t size) { return std::to_string(size >> 20); };
  return std::string(tcpstore::name(command.op)) + " of key '" +
         text::one_line(key, limits::kStoreKeyBytesLogged) + "' needs " + std::to_string(bytes) +
         " bytes more, and " + mib(budget.used()) + " of " + mib(budget.limit()) +
         " MiB are used; the limit is store_memory_mb (docs/reference/flags.md)";
}

std::string too_long(const Command& command, size_t bytes) {
  return std::string("the reply to ") + tcpstore::name(command.op) + " has " +
         std::to_string(bytes) + " bytes or more, and the limit is " +
         std::to_string(limits::kStoreReplyBytes);
}

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

Store::Store(std::shared_ptr<MemoryBudget> budget)
    : budget_(budget ? std::move(budget) : std::make_shared<MemoryBudget>()),
      held_(budget_),
      blocked_clients_(budget_) {}

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
    case Op::MultiGet: return multi_get(call);
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
  }
}

void Store::session_closed(SessionId session, ReplySink& sink) {
  blocked_clients_.forget(session);
  auto promise = promised_.find(session.value);
  if (promise == promised_.end()) return;
  std::string key = std::move(promise->second);
  promised_.erase(promise);
  wake_for_queue(sink, key);
}

// --- plain keys

bool Store::has_room(Call& call, std::string_view key, size_t bytes) {
  if (budget_->has_room(bytes)) return true;
  call.sink.refuse(call.session, no_room(call.command, key, bytes, *budget_));
  return false;
}

Value* Store::make_room(Call& call, std::string_view key, Map<Value>::iterator found,
                        size_t bytes) {
  if (found != values_.end()) {
    const size_t own = found->second.own_memory();
    return bytes <= own || has_room(call, key, bytes - own) ? &found->second : nullptr;
  }
  if (!has_room(call, key, kEntryBytes + key.size() + bytes)) return nullptr;
  found = values_.emplace(std::string(key), Value()).first;
  held_.add(kEntryBytes + key.size() + found->second.own_memory());
  return &found->second;
}

const Value* Store::put(Call& call, std::string_view key, std::string_view bytes) {
  auto found = values_.find(key);
  if (found == values_.end() || !found->second.has_room_for(bytes.size())) {
    return put_counted(call, key, found, bytes);
  }
  found->second.overwrite(bytes);
  wake(call.sink, key);
  return &found->second;
}

const Value* Store::put_counted(Call& call, std::string_view key, Map<Value>::iterator found,
                                std::string_view bytes) {
  const size_t copied = is_kept_in_place(call, bytes) ? 0 : bytes.size();
  Value* value = make_room(call, key, found, copied);
  if (value == nullptr) return nullptr;
  keep(call, *value, bytes);
  wake(call.sink, key);
  return value;
}

bool Store::is_kept_in_place(const Call& call, std::string_view bytes) {
  return bytes.size() >= kAdoptFrom && bytes.size() >= call.owned_bytes / 2 && call.owner;
}

void Store::keep(const Call& call, Value& value, std::string_view bytes) {
  const size_t before = value.own_memory();
  if (is_kept_in_place(call, bytes)) {
    value.adopt({call.owner, bytes});
  } else {
    value.assign(bytes, budget_);
  }
  const size_t after = value.own_memory();
  if (after != before) held_.add(after - before);
}

void Store::write(Call& call) { put(call, call.command.key, call.command.value); }

void Store::append(Call& call) {
  auto found = values_.find(call.command.key);
  if (found == values_.end()) return write(call);
  Value& value = found->second;
  const size_t needed = value.memory_to_append(call.command.value.size());
  if (!has_room(call, call.command.key, needed)) return;
  const size_t memory = value.own_memory();
  value.append(call.command.value, budget_);
  held_.add(value.own_memory() - memory);
  wake(call.sink, call.command.key);
}

void Store::multi_set(Call& call) {
  size_t needed = 0;
  bool is_key = true;
  for (std::string_view item : call.command.items) {
    needed += item.size() + (is_key ? kEntryBytes : 0);
    is_key = !is_key;
  }
  const bool is_empty = call.command.items.size() == 0;
  if (!is_empty && !has_room(call, *call.command.items.begin(), needed)) return;
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
    return replace_and_reply(call);
  }
  if (found->second.view() != command.expected) {
    wake(call.sink, command.key);
    return call.sink.reply_value(call.session, found->second);
  }
  replace_and_reply(call);
}

void Store::replace_and_reply(Call& call) {
  const Value* value = put(call, call.command.key, call.command.value);
  if (value != nullptr) call.sink.reply_value(call.session, *value);
}

void Store::get(Call& call, std::string_view key) {
  auto found = values_.find(key);
  if (found == values_.end()) return call.sink.reply_bytes(call.session, {});
  call.sink.reply_value(call.session, found->second);
}

// The reply copies small values, so a list that names one key many times could make it long. Other
// lists need no second search.
void Store::multi_get(Call& call) {
  const tcpstore::Strings& keys = call.command.items;
  if (keys.size() > limits::kStoreReplyBytes / Value::kSharedFrom) share_for_reply(keys);
  for (std::string_view key : keys) get(call, key);
}

// If a reply with these values would copy too much: shares all but those that are too small to
// exceed the limit even in the longest list.
void Store::share_for_reply(const tcpstore::Strings& keys) {
  static_assert(limits::kStoreListItems * limits::kStoreSharedAtNeed <= limits::kStoreReplyBytes);
  size_t copied = 0;
  std::vector<Value*> found;
  for (std::string_view key : keys) {
    const auto value = values_.find(key);
    if (value == values_.end() || value->second.shared() != nullptr) continue;
    copied += value->second.view().size();
    if (value->second.view().size() >= limits::kStoreSharedAtNeed) found.push_back(&value->second);
  }
  if (copied <= limits::kStoreReplyBytes) return;
  for (Value* value : found) {
    held_.add(-value->own_memory());
    value->share_now(budget_);
  }
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
  if (put(call, call.command.key, {text, static_cast<size_t>(end - text)}) == nullptr) return;
  call.sink.reply_number(call.session, *sum);
}

void Store::remove(Call& call) {
  auto found = values_.find(call.command.key);
  if (found == values_.end()) return call.sink.reply_number(call.session, 0);
  held_.add(-(kEntryBytes + found->first.size() + found->second.own_memory()));
  values_.erase(found);
  call.sink.reply_number(call.session, 1);
}

void Store::list_keys(Call& call) {
  std::vector<std::string_view> names;
  names.reserve(values_.size());
  size_t bytes = 0;
  for (const auto& [key, value] : values_) {
    names.push_back(key);
    bytes += key.size();
  }
  if (bytes > limits::kStoreReplyBytes) {
    return call.sink.refuse(call.session, too_long(call.command, bytes));
  }
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
    if (!has_room(call, key, BlockedClients::cost(key))) {
      blocked_clients_.forget(call.session);
      return;
    }
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
  Value* value = make_room(call, key, values_.find(key), BlockedClients::cost(key));
  if (value == nullptr) return;
  keep(call, *value, std::to_string(*count));
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
  const std::string_view key = call.command.key;
  auto found = queues_.find(key);
  const bool is_new = found == queues_.end();
  const size_t fixed = kItemBytes + (is_new ? kQueueBytes + key.size() : 0);
  const size_t copied = is_kept_in_place(call, call.command.value) ? 0 : call.command.value.size();
  if (!has_room(call, key, fixed + copied)) return;
  if (is_new) found = queues_.emplace(std::string(key), std::deque<Value>()).first;
  Value& item = found->second.emplace_back();
  held_.add(fixed + item.own_memory());
  keep(call, item, call.command.value);
  wake_for_queue(call.sink, call.command.key);
}

void Store::queue_pop(Call& call) {
  auto found = queues_.find(call.command.key);
  if (found == queues_.end()) return call.sink.reply_number(call.session, 0);
  std::deque<Value>& items = found->second;
  call.sink.reply_number(call.session, static_cast<int64_t>(items.size()));
  call.sink.reply_value(call.session, items.front());
  held_.add(-(kItemBytes + items.front().own_memory()));
  items.pop_front();
  if (!items.empty()) return;
  held_.add(-(kQueueBytes + found->first.size()));
  queues_.erase(found);
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

}  // namespace cpprun
