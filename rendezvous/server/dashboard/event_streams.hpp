// EventStreams: those who read /events (server-sent events), what each is told, and when one is let
// go. Topics are whole pictures, not differences, so a slow reader misses nothing by being passed
// over: it gets the newest picture when it has read the last.
//
// No Asio, no clock: the server ticks. Thread: the server's loop.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/server/session.hpp"

namespace cpprun {

// The newest text of a topic, one line.
struct Topic {
  std::string name;  // of the event
  std::string text;
  std::string private_to{};  // readers that were added for this only; empty: for all others
};

class EventStreams {
 public:
  // The connection's answer has begun; it lives until remove(). With `private_to` it is told that
  // topic only, else the public ones. False: there is no room.
  bool add(Connection& connection, const std::string& private_to = "");
  void remove(SessionId id);
  bool empty() const { return readers_.empty(); }
  size_t size() const { return readers_.size(); }
  // The private topics that somebody reads.
  std::set<std::string> private_ones() const;

  // Sends each reader what it has not seen: nothing if it still has something to read. One that
  // reads nothing for limits::kStreamUnreadTicks ticks is reset. `now_ms` is told as the events'
  // id.
  void tick(int64_t now_ms, std::vector<Topic> topics);

 private:
  struct Reader {
    Connection* connection = nullptr;
    std::string private_to;
    std::map<std::string, uint64_t> seen{};  // version by name of the event
    int unread_ticks = 0;                    // in a row
    int silent_ticks = 0;                    // since it was last sent something
  };
  struct Picture {
    uint64_t version = 0;
    std::string text;
    SharedBytes event;  // as it goes over the wire
  };

  void take(int64_t now_ms, std::vector<Topic> topics);
  void serve(Reader& reader) const;

  std::map<SessionId, Reader> readers_;
  // By who is told it, then by the name of the event.
  std::map<std::string, std::map<std::string, Picture>> pictures_;
};

}  // namespace cpprun
