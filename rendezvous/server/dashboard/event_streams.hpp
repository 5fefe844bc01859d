// EventStreams: the readers of /events (server-sent events). A topic's text is a full state, not a
// difference, so a slow reader can skip versions: it gets the newest one when it has read the last.
// No Asio, no clock: the server calls tick(). Thread: the server's loop.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/server/session.hpp"

namespace cpprun {

// The newest text of a topic, on one line.
struct Topic {
  std::string name;  // name of the event
  std::string text;
  // Only for readers added with this value; empty: for readers added without one.
  std::string private_to{};
};

class EventStreams {
 public:
  // Adds a reader whose HTTP response has begun; the connection lives until remove(). With
  // `private_to` it receives that topic only, otherwise the public ones. False: too many readers.
  bool add(Connection& connection, const std::string& private_to = "");
  void remove(SessionId id);
  bool empty() const { return readers_.empty(); }
  size_t size() const { return readers_.size(); }
  // The private topics that have readers.
  std::set<std::string> private_ones() const;

  // Sends each reader the topics that changed, unless it still has unread bytes. Resets a reader
  // that read nothing for limits::kStreamUnreadTicks ticks. `now_ms` becomes the events' id.
  void tick(int64_t now_ms, std::vector<Topic> topics);

 private:
  struct Reader {
    Connection* connection = nullptr;
    std::string private_to;
    std::map<std::string, uint64_t> seen{};  // sent version by name of the event
    int unread_ticks = 0;                    // in a row
    int silent_ticks = 0;                    // since the last event sent to it
  };
  struct Picture {
    uint64_t version = 0;
    std::string text;
    SharedBytes event;  // encoded
  };

  void take(int64_t now_ms, std::vector<Topic> topics);
  void serve(Reader& reader) const;

  std::map<SessionId, Reader> readers_;
  // By Topic::private_to, then by name of the event.
  std::map<std::string, std::map<std::string, Picture>> pictures_;
};

}  // namespace cpprun
