// The store and a slow reference implementation, on random commands of a few sessions and keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "rendezvous/store/store.hpp"
#include "tests/support/encoded_replies.hpp"

namespace cpprun {
namespace {

using tcpstore::Command;
using tcpstore::Op;
using Replies = std::map<uint64_t, std::string>;

// No index, no linked lists: every write checks every wait.
class Twin {
 public:
  void apply(uint64_t from, const Command& c, Replies& out) {
    settle(from, c, out);
    std::string key(c.key);
    std::string value(c.value);
    std::vector<std::string> items(c.items.size());
    size_t i = 0;
    for (std::string_view item : c.items) items[i++] = item;
    std::string& me = out[from];
    switch (c.op) {
      case Op::Set: return put(key, value, out);
      case Op::Append: return put(key, keys_[key] + value, out);
      case Op::CompareSet: return compare_set(key, std::string(c.expected), value, me, out);
      case Op::Get: return tcpstore::reply_bytes(me, read(key));
      case Op::Add:
        if (auto sum = counted(key, c.number, me)) {
          put(key, std::to_string(*sum), out);
          tcpstore::reply_number(me, *sum);
        }
        return;
      case Op::Check: return tcpstore::reply_byte(me, missing(items).empty() ? 0 : 1);
      case Op::Wait: return wait(from, items, me);
      case Op::GetNumKeys: return tcpstore::reply_number(me, static_cast<int64_t>(keys_.size()));
      case Op::DeleteKey: return tcpstore::reply_number(me, static_cast<int64_t>(keys_.erase(key)));
      case Op::MultiGet:
        for (const std::string& item : items) tcpstore::reply_bytes(me, read(item));
        return;
      case Op::MultiSet:
        for (size_t k = 0; k < items.size(); k += 2) put(items[k], items[k + 1], out);
        return;
      case Op::CancelWait: closed(from); return tcpstore::reply_byte(me, 1);
      case Op::QueuePush: queues_[key].push_back(value); return pushed(key, out);
      case Op::QueuePop: return pop(key, me);
      case Op::QueueLen:
        return tcpstore::reply_number(me, static_cast<int64_t>(queues_[key].size()));
      case Op::ListKeys: return list(me);
      case Op::Barrier: return barrier(from, key, c.number, me, out);
      default: return tcpstore::reply_nonce(me, static_cast<uint32_t>(c.number));
    }
  }
  void gone(uint64_t session, Replies& out) {
    closed(session);
    release_promise(session, out);
  }

 private:
  struct Wait {
    uint64_t session;
    bool is_barrier;
    std::vector<std::string> missing;
  };

  std::string read(const std::string& key) { return keys_.count(key) ? keys_[key] : ""; }
  bool has(const std::string& key) { return keys_.count(key) || !queues_[key].empty(); }
  std::vector<std::string> missing(const std::vector<std::string>& items) {
    std::vector<std::string> out;
    for (const std::string& item : items) {
      bool is_new = std::find(out.begin(), out.end(), item) == out.end();
      if (!has(item) && is_new) out.push_back(item);
    }
    return out;
  }
  void put(const std::string& key, const std::string& value, Replies& out) {
    keys_[key] = value;
    wake(key, out, true, true);
  }
  // Removes the key from every wait of the given kinds; answers waits without remaining keys.
  void wake(const std::string& key, Replies& out, bool keys, bool barriers) {
    for (Wait& wait : blocked_clients_) {
      if (wait.is_barrier ? barriers : keys) std::erase(wait.missing, key);
    }
    for (const Wait& wait : blocked_clients_) {
      if (wait.missing.empty()) tcpstore::reply_byte(out[wait.session], 0);
    }
    std::erase_if(blocked_clients_, [](const Wait& wait) { return wait.missing.empty(); });
  }
  void pushed(const std::string& key, Replies& out) {
    if (queues_[key].empty()) return;
    for (auto wait = blocked_clients_.begin(); wait != blocked_clients_.end(); ++wait) {
      if (wait->is_barrier || !std::erase(wait->missing, key)) continue;
      if (!wait->missing.empty()) continue;
      tcpstore::reply_byte(out[wait->session], 0);
      promised_[wait->session] = key;
      blocked_clients_.erase(wait);
      return;
    }
  }
  void settle(uint64_t from, const Command& c, Replies& out) {
    bool is_fetched = promised_.count(from) && c.op == Op::QueuePop && c.key == promised_[from];
    if (is_fetched) promised_.erase(from);
    release_promise(from, out);
  }
  void release_promise(uint64_t session, Replies& out) {
    auto promise = promised_.find(session);
    if (promise == promised_.end()) return;
    std::string key = promise->second;
    promised_.erase(promise);
    pushed(key, out);
  }
  void compare_set(const std::string& key, const std::string& expected, const std::string& value,
                   std::string& me, Replies& out) {
    bool is_there = keys_.count(key) > 0;
    if (is_there ? keys_[key] == expected : expected.empty()) {
      put(key, value, out);
    } else if (is_there) {
      wake(key, out, true, true);
    }
    tcpstore::reply_bytes(me, keys_.count(key) ? keys_[key] : expected);
  }
  std::optional<int64_t> counted(const std::string& key, int64_t delta, std::string& me) {
    try {
      return (keys_.count(key) ? std::stoll(keys_[key]) : 0) + delta;
    } catch (const std::exception&) {
      me += "refused";
      return std::nullopt;
    }
  }
  void wait(uint64_t from, const std::vector<std::string>& items, std::string& me) {
    closed(from);
    std::vector<std::string> left = missing(items);
    if (left.empty()) return tcpstore::reply_byte(me, 0);
    blocked_clients_.push_back({from, false, left});
  }
  void barrier(uint64_t from, const std::string& key, int64_t assignment, std::string& me,
               Replies& out) {
    auto count = counted(key, 1, me);
    if (!count) return;
    closed(from);
    keys_[key] = std::to_string(*count);
    if (*count >= assignment) {
      tcpstore::reply_byte(me, 0);
      return wake(key, out, true, true);
    }
    if (*count == 1) wake(key, out, true, false);
    blocked_clients_.push_back({from, true, {key}});
  }
  void pop(const std::string& key, std::string& me) {
    std::deque<std::string>& items = queues_[key];
    tcpstore::reply_number(me, static_cast<int64_t>(items.size()));
    if (items.empty()) return;
    tcpstore::reply_bytes(me, items.front());
    items.pop_front();
  }
  void list(std::string& me) {
    tcpstore::reply_number(me, static_cast<int64_t>(keys_.size()));
    for (const auto& [key, value] : keys_) tcpstore::reply_bytes(me, key);
  }
  void closed(uint64_t session) {
    std::erase_if(blocked_clients_, [=](const Wait& wait) { return wait.session == session; });
  }

  std::map<std::string, std::string> keys_;
  std::map<std::string, std::deque<std::string>> queues_;
  std::deque<Wait> blocked_clients_;
  std::map<uint64_t, std::string> promised_;
};

class Prng {
 public:
  explicit Prng(uint32_t seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  std::string_view key() { return kKeys[below(std::size(kKeys))]; }
  std::string_view value() { return kValues[below(std::size(kValues))]; }

  Command command() {
    Command c;
    c.op = kOps[below(std::size(kOps))];
    c.key = key();
    c.value = value();
    c.expected = value();
    c.number = static_cast<int64_t>(below(5)) - 1;
    raw_.clear();
    size_t count = below(4) * (c.op == Op::MultiSet ? 2 : 1);
    for (size_t i = 0; i < count; ++i) tcpstore::reply_bytes(raw_, key());
    c.items = tcpstore::Strings(raw_.data(), count);
    return c;
  }

 private:
  static constexpr std::string_view kKeys[] = {"/a", "/b", "/c", "/d"};
  static constexpr std::string_view kValues[] = {"", "1", "-2", "text", "3x"};
  static constexpr Op kOps[] = {
      Op::Set,      Op::CompareSet, Op::Get,        Op::Add,       Op::Check,     Op::Wait,
      Op::Wait,     Op::Wait,       Op::GetNumKeys, Op::DeleteKey, Op::DeleteKey, Op::Append,
      Op::MultiGet, Op::MultiSet,   Op::CancelWait, Op::QueuePush, Op::QueuePop,  Op::QueuePop,
      Op::QueueLen, Op::ListKeys,   Op::Barrier,    Op::DeleteKey};
  std::mt19937 random_;
  std::string raw_;
};

TEST(StoreReference, EqualsTheReferenceOnRandomCommands) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    Store store;
    Twin twin;
    for (int step = 0; step < 400; ++step) {
      EncodedReplies got;
      Replies want;
      uint64_t session = prng.below(6);
      if (prng.below(20) == 0) {
        store.session_closed(SessionId(session), got);
        twin.gone(session, want);
      } else {
        Command command = prng.command();
        store.apply(SessionId(session), command, got);
        twin.apply(session, command, want);
      }
      std::erase_if(want, [](const auto& one) { return one.second.empty(); });
      ASSERT_EQ(got.replies, want) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace cpprun
