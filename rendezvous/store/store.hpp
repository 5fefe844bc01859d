// The key-value store behind torch's TCPStore protocol: keys, waits, queues, barriers.
// apply() carries out one command and replies through a ReplySink: at once or, for a wait, when a
// later command of another session completes it. No I/O, clock or threads; its owner calls it from
// one thread. Rules of each command: docs/protocol.md. Guarantees:
//   1. A command that has a reply gets exactly one, except a wait that ends by CANCEL_WAIT, by a
//      newer wait of the same session or by the session's end: those get none.
//   2. Waits are answered in the order in which they began.
//   3. session_closed() costs O(keys that the session waits for).
//   4. A command for which the memory budget has no room is refused and changes nothing. Deleted
//      keys and popped items give memory back.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/ids.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "rendezvous/store/blocked_clients.hpp"
#include "rendezvous/store/memory_budget.hpp"
#include "rendezvous/store/value.hpp"

namespace cpprun {

// Receives the replies. The server encodes them (tcpstore_encode.hpp) into the connection's output.
// Must not call back into the store.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void reply_byte(SessionId to, uint8_t value) = 0;
  virtual void reply_number(SessionId to, int64_t value) = 0;
  virtual void reply_nonce(SessionId to, uint32_t value) = 0;
  // Bytes with their length in front.
  virtual void reply_bytes(SessionId to, std::string_view value) = 0;
  // The same; the sink may keep a large value by reference.
  virtual void reply_value(SessionId to, const Value& value) = 0;
  // The command failed and its protocol has no error reply: the session must end.
  virtual void refuse(SessionId to, std::string_view why) = 0;
};

class Store {
 public:
  // `budget` counts keys, values and waits, maybe of several stores; null: there is no limit.
  explicit Store(std::shared_ptr<MemoryBudget> budget = nullptr);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // `owner`, if given, owns the memory of the command's views, which stays constant while others
  // hold it. A value that fills at least half of `owned_bytes` is then kept in place.
  void apply(SessionId session, const tcpstore::Command& command, ReplySink& sink,
             const std::shared_ptr<const void>& owner = nullptr, size_t owned_bytes = 0);
  // Forgets the session's waits; it gets no further reply. May wake another session, if a queue's
  // item was promised to this one.
  void session_closed(SessionId session, ReplySink& sink);

  size_t keys() const { return values_.size(); }
  size_t waits() const { return blocked_clients_.size(); }

 private:
  template <class T>
  using Map = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;
  struct Call;  // one apply(): command, session and sink together

  void settle_promise(Call& call);
  void write(Call& call);
  void append(Call& call);
  void multi_set(Call& call);
  void compare_set(Call& call);
  void replace_and_reply(Call& call);
  void get(Call& call, std::string_view key);
  void add(Call& call);
  void check(Call& call);
  void wait(Call& call);
  void barrier(Call& call);
  void remove(Call& call);
  void list_keys(Call& call);
  void queue_push(Call& call);
  void queue_pop(Call& call);

  bool is_present(std::string_view key) const;
  size_t queue_length(std::string_view key) const;
  // False: the session is refused.
  bool has_room(Call& call, std::string_view key, size_t bytes);
  // The value at `found`, or a new one if there is none. Null: there is no room for `bytes` of it,
  // and the session is refused.
  Value* make_room(Call& call, std::string_view key, Map<Value>::iterator found, size_t bytes);
  // Null: the same.
  const Value* put(Call& call, std::string_view key, std::string_view bytes);
  const Value* put_counted(Call& call, std::string_view key, Map<Value>::iterator found,
                           std::string_view bytes);
  static bool is_kept_in_place(const Call& call, std::string_view bytes);
  void keep(const Call& call, Value& value, std::string_view bytes);
  void multi_get(Call& call);
  void share_for_reply(const tcpstore::Strings& keys);
  std::optional<int64_t> count_up(Call& call, std::string_view key, int64_t delta);
  void wake(ReplySink& sink, std::string_view key);
  void wake_for_queue(ReplySink& sink, std::string_view key);

  std::shared_ptr<MemoryBudget> budget_;  // shared: values may outlive the store
  MemoryBudget::Charge held_;             // keys, small values and queues
  Map<Value> values_;
  Map<std::deque<Value>> queues_;  // none of them is empty
  BlockedClients blocked_clients_;
  // Sessions woken for a queue's item that have not popped it yet; if they never do, the next
  // waiter is woken.
  std::unordered_map<uint64_t, std::string> promised_;
};

}  // namespace cpprun
