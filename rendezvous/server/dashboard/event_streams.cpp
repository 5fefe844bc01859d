#include "rendezvous/server/dashboard/event_streams.hpp"

#include <memory>
#include <utility>

#include "common/limits/dashboard.hpp"

namespace cpprun {
namespace {

SharedBytes as_event(const Topic& topic, int64_t now_ms) {
  auto bytes = std::make_shared<const std::string>("event: " + topic.name +
                                                   "\nid: " + std::to_string(now_ms) +
                                                   "\ndata: " + topic.text + "\n\n");
  const std::string_view view = *bytes;
  return {std::move(bytes), view};
}

}  // namespace

bool EventStreams::add(Connection& connection, const std::string& private_to) {
  if (readers_.size() >= limits::kStreams) return false;
  readers_.emplace(connection.id(), Reader{&connection, private_to});
  return true;
}

void EventStreams::remove(SessionId id) {
  readers_.erase(id);
  std::set<std::string> read;
  for (const auto& [other, reader] : readers_) read.insert(reader.private_to);
  std::erase_if(pictures_, [&](const auto& entry) { return !read.contains(entry.first); });
}

std::set<std::string> EventStreams::private_ones() const {
  std::set<std::string> all;
  for (const auto& [id, reader] : readers_) all.insert(reader.private_to);
  all.erase("");
  return all;
}

void EventStreams::tick(int64_t now_ms, std::vector<Topic> topics) {
  take(now_ms, std::move(topics));
  for (auto& [id, reader] : readers_) serve(reader);
}

void EventStreams::take(int64_t now_ms, std::vector<Topic> topics) {
  for (Topic& topic : topics) {
    Picture& picture = pictures_[topic.private_to][topic.name];
    if (picture.version > 0 && picture.text == topic.text) continue;
    ++picture.version;
    picture.event = as_event(topic, now_ms);
    picture.text = std::move(topic.text);
  }
}

// reset() notifies the session, which calls remove(), only at the end of the batch; so readers_
// does not change during the loop in tick().
void EventStreams::serve(Reader& reader) const {
  if (reader.connection->unsent() > 0) {
    if (++reader.unread_ticks >= limits::kStreamUnreadTicks) reader.connection->reset();
    return;
  }
  reader.unread_ticks = 0;
  ++reader.silent_ticks;
  const auto mine = pictures_.find(reader.private_to);
  if (mine == pictures_.end()) return;
  for (const auto& [name, picture] : mine->second) {
    if (std::exchange(reader.seen[name], picture.version) == picture.version) continue;
    reader.connection->send_shared(picture.event);
    reader.silent_ticks = 0;
  }
  if (reader.silent_ticks < limits::kStreamSilentTicks) return;
  reader.connection->send(":\n\n");  // a comment: detects a peer that is gone
  reader.silent_ticks = 0;
}

}  // namespace cpprun
