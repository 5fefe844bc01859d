// Effects: what the coordinator's cores wish to happen. Plain data; the server carries it out, the
// simulator too.
//
// Ordering contract: carried out front to back, each before the next. A `Close` comes after
// everything that was sent to that session; a `ServeStore` comes before every `RankAssignment` that
// names its port.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

struct Send {
  SessionId session;
  control::CoordinatorMessage message;
};

// End a connection after what was sent: politely (FIN), or by reset where FIN would be taken for a
// farewell.
struct Close {
  SessionId session;
  bool is_reset = false;
};

// Open a listening port for the next round's store and tell the job: Coordinator::on_store_port().
struct WantStorePort {
  std::string run_id;
};

// From now on a fresh, empty store of this round is served at `port` (0: at the main port); the
// round's predecessor and its port are closed.
struct ServeStore {
  std::string run_id;
  RoundNumber round;
  int64_t port = 0;
};

// By a leader lease only (R18): nothing behind this, of later calls neither, goes out before these
// facts stand in etcd.
struct PersistState {
  control::PersistedJobState facts;
};

// The job is over: its store and its spare port are closed.
struct DropStores {
  std::string run_id;
};

// A log line as data. Tests assert on `event`, the shell prints the text.
struct LogEvent {
  enum class Level { Debug, Info, Warning } level = Level::Info;
  std::string event;
  std::string text;
};

using Effect =
    std::variant<Send, Close, WantStorePort, ServeStore, DropStores, LogEvent, PersistState>;
using Effects = std::vector<Effect>;

inline void log_info(Effects& effects, std::string event, std::string text) {
  effects.push_back(LogEvent{LogEvent::Level::Info, std::move(event), std::move(text)});
}

}  // namespace cpprun
