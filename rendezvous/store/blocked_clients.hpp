// BlockedClients: the waits of sessions for keys. Part of the store; knows no values.
// A session's wait names one or more keys and ends when each of them has arrived once. Every (wait,
// key) pair is a node in the key's list, so that a key's arrival touches only its own waiters and a
// session's end only its own nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "rendezvous/store/memory_budget.hpp"

namespace cpprun {

// Of strings in maps that are also searched by string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

class BlockedClients {
 public:
  enum class Kind : uint8_t { Keys, Barrier };

  // `budget` counts the memory of the waits; null: it is not counted.
  explicit BlockedClients(std::shared_ptr<MemoryBudget> budget = nullptr)
      : held_(std::move(budget)) {}
  BlockedClients(const BlockedClients&) = delete;
  BlockedClients& operator=(const BlockedClients&) = delete;

  // Forgets the session's former wait, if any, and starts a new one without keys.
  void begin(SessionId session, Kind kind);
  // Memory that add() may need.
  static size_t cost(std::string_view key) { return kNodeBytes + kListBytes + key.size(); }
  // Adds a key to the wait just begun. A duplicate has no effect.
  void add(std::string_view key);
  // True if the session had a wait.
  bool forget(SessionId session);

  // The key arrived for all its waiters (or those of one kind). Returns the sessions whose wait is
  // complete, in the order in which they began to wait.
  std::vector<SessionId> arrived(std::string_view key, std::optional<Kind> only = std::nullopt);
  // An item of a queue arrived for the key's waiters, up to the first whose wait is complete by it.
  // Returns the session of that one.
  std::optional<SessionId> arrived_for_one(std::string_view key);

  bool empty() const { return by_key_.empty(); }
  size_t size() const { return by_session_.size(); }

 private:
  struct Wait;
  struct Node;
  struct WaitList {  // a key's waiters in the order of their waits
    Node* first = nullptr;
    Node* last = nullptr;
  };
  using WaitLists = std::unordered_map<std::string, WaitList, TextHash, std::equal_to<>>;
  struct Node {
    Wait* wait = nullptr;
    WaitLists::value_type* line = nullptr;  // null once the key has arrived
    Node* before = nullptr;
    Node* after = nullptr;
  };
  struct Wait {
    SessionId session;
    Kind kind = Kind::Keys;
    size_t missing = 0;
    std::vector<std::unique_ptr<Node>> nodes;
  };

  // What a node, and a list without its key, take in memory with the allocator's part.
  static constexpr size_t kNodeBytes = 64;
  static constexpr size_t kListBytes = 128;

  void unlink(Node& node);
  bool step(Node& node);

  MemoryBudget::Charge held_;
  WaitLists by_key_;  // no list is empty
  std::unordered_map<uint64_t, Wait> by_session_;
  Wait* newest_ = nullptr;  // the one that add() extends
};

}  // namespace cpprun
