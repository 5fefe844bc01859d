// GroupSockets: the connections of the process groups of a round, so that another thread can end
// them. Gloo has no call that wakes a thread in a collective; the end of a connection does. Private
// to the SDK; used by cpprun::elastic only.
//
// A connection is shut down for reading only, and stays open for its peer until forget(). Gloo
// (gloo/transport/tcp/pair.cc) loses an error of a write: a peer that wrote to a closed connection
// would wait until its timeout.
//
// A connection is known by its inode, because descriptors are used again. The sockets that appear
// while a store or a backend is made count, also those that other threads make meanwhile. Listening
// sockets are left out: Gloo ends the process if one is shut down. Any thread.
#pragma once

#include <cstdint>
#include <set>

namespace cpprun::dist {

class GroupSockets {
 public:
  // From now on the connections of new groups are known.
  static void follow();
  static bool are_followed();
  // No thread reads from the known connections any more, nor from those that become known until
  // forget().
  static void shut_down();
  static bool are_shut_down();
  // Another round begins: closes what was shut down, and none is known.
  static void forget();

  // The connections that appear between its construction and its destruction become known. No
  // effect before follow().
  class Appearing {
   public:
    Appearing();
    Appearing(const Appearing&) = delete;
    ~Appearing();

   private:
    bool is_followed_;
    std::set<uint64_t> before_;
  };
};

}  // namespace cpprun::dist
