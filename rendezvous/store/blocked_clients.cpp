#include "rendezvous/store/blocked_clients.hpp"

#include "common/check.hpp"

namespace cpprun {

void BlockedClients::begin(SessionId session, Kind kind) {
  forget(session);
  newest_ = &by_session_[session.value];
  newest_->session = session;
  newest_->kind = kind;
}

void BlockedClients::add(std::string_view key) {
  CPPRUN_CHECK(newest_ != nullptr);
  auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    found = by_key_.emplace(std::string(key), WaitList{}).first;
    held_.add(kListBytes + key.size());
  }
  WaitList& line = found->second;
  // No other wait can have been added since begin(), so a duplicate is the last of the list.
  if (line.last != nullptr && line.last->wait == newest_) return;
  auto node = std::make_unique<Node>();
  node->wait = newest_;
  node->line = &*found;
  node->before = line.last;
  (line.last != nullptr ? line.last->after : line.first) = node.get();
  line.last = node.get();
  newest_->nodes.push_back(std::move(node));
  held_.add(kNodeBytes);
  ++newest_->missing;
}

bool BlockedClients::forget(SessionId session) {
  auto found = by_session_.find(session.value);
  if (found == by_session_.end()) return false;
  for (std::unique_ptr<Node>& node : found->second.nodes) unlink(*node);
  held_.add(-(kNodeBytes * found->second.nodes.size()));
  if (newest_ == &found->second) newest_ = nullptr;
  by_session_.erase(found);
  return true;
}

void BlockedClients::unlink(Node& node) {
  if (node.line == nullptr) return;
  WaitList& line = node.line->second;
  (node.before != nullptr ? node.before->after : line.first) = node.after;
  (node.after != nullptr ? node.after->before : line.last) = node.before;
  if (line.first == nullptr) {
    held_.add(-(kListBytes + node.line->first.size()));
    by_key_.erase(by_key_.find(node.line->first));
  }
  node.line = nullptr;
}

// True if this node completed the wait; both are deleted then.
bool BlockedClients::step(Node& node) {
  unlink(node);
  Wait& wait = *node.wait;
  CPPRUN_CHECK(wait.missing > 0);
  if (--wait.missing > 0) return false;
  forget(wait.session);
  return true;
}

std::vector<SessionId> BlockedClients::arrived(std::string_view key, std::optional<Kind> only) {
  std::vector<SessionId> done;
  auto found = by_key_.find(key);
  if (found == by_key_.end()) return done;
  for (Node* node = found->second.first; node != nullptr;) {
    Node* next = node->after;  // of another wait, so it survives step()
    SessionId session = node->wait->session;
    bool is_meant = !only || node->wait->kind == *only;
    if (is_meant && step(*node)) done.push_back(session);
    node = next;
  }
  return done;
}

std::optional<SessionId> BlockedClients::arrived_for_one(std::string_view key) {
  auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  for (Node* node = found->second.first; node != nullptr;) {
    Node* next = node->after;  // of another wait, so it survives step()
    SessionId session = node->wait->session;
    if (node->wait->kind == Kind::Keys && step(*node)) return session;
    node = next;
  }
  return std::nullopt;
}

}  // namespace cpprun
