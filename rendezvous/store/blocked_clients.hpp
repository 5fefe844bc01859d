// Who waits for which keys. Part of the store; knows no values.
//
// A wait of a session names one or more keys and ends when each of them has come once. Every (wait,
// key) pair is a node in the key's list, so that a key's arrival touches only its own waiters and a
// session's end only its own nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/ids.hpp"

namespace cpprun {

class BlockedClients {
 public:
  enum class Kind : uint8_t { Keys, Barrier };

  BlockedClients() = default;
  BlockedClients(const BlockedClients&) = delete;
  BlockedClients& operator=(const BlockedClients&) = delete;

  // Forgets the session's former wait, if any, and starts a new one, without keys as yet.
  void begin(SessionId session, Kind kind);
  // One more key of the wait just begun; a key that it names already changes nothing.
  void add(std::string_view key);
  // True if the session had a wait.
  bool forget(SessionId session);

  // The key came: all its waiters (or those of one kind) have one less to wait for. The sessions
  // whose wait ended with it, in order of arrival.
  std::vector<SessionId> arrived(std::string_view key, std::optional<Kind> only = std::nullopt);
  // A queue's item came: the first waiter has one less to wait for. Its session if its wait ended
  // with it.
  std::optional<SessionId> arrived_for_one(std::string_view key);

  bool empty() const { return by_key_.empty(); }
  size_t size() const { return by_session_.size(); }

 private:
  struct Wait;
  struct Node;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  struct WaitList {  // a key's waiters, first come first
    Node* first = nullptr;
    Node* last = nullptr;
  };
  using WaitLists = std::unordered_map<std::string, WaitList, Hash, std::equal_to<>>;
  struct Node {
    Wait* wait = nullptr;
    WaitLists::value_type* line = nullptr;  // null once the key has come
    Node* before = nullptr;
    Node* after = nullptr;
  };
  struct Wait {
    SessionId session;
    Kind kind = Kind::Keys;
    size_t missing = 0;
    std::vector<std::unique_ptr<Node>> nodes;
  };

  void unlink(Node& node);
  bool step(Node& node);

  WaitLists by_key_;  // no line is empty
  std::unordered_map<uint64_t, Wait> by_session_;
  Wait* newest_ = nullptr;  // the one that add() extends
};

}  // namespace cpprun
