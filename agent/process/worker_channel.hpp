// WorkerChannel: the agent's end of the line to its workers. A unix socket with a name; who
// connects and is of a live worker's session gets that worker's page, and may say that it is ready
// or why it ends. Bytes: common/worker_channel.hpp, memory: common/worker_page.hpp.
//
// Costs nothing while nobody connects, and wakes nobody afterwards. A peer that is a stranger, says
// what it must not say or says too much loses its connection; what all of them can cost in time is
// limited. Thread: the loop's.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agent/process/shared_page.hpp"
#include "agent/process/timer.hpp"
#include "common/worker_channel.hpp"

namespace cpprun {

// How far a worker said it was.
struct Heartbeat {
  int64_t step = 0;
  int64_t collectives = 0;
  uint32_t phase = 0;
  Duration age{};
};

class WorkerChannel {
 public:
  struct Events {
    // The local rank of the live worker that leads this session; nothing if there is none.
    std::function<std::optional<int>(int session)> worker_of;
    std::function<void(int local_rank)> on_ready;  // once per worker and round
  };
  // What an ended worker had left here.
  struct LastWords {
    std::string report;  // empty: none
    std::optional<Heartbeat> heartbeat;
  };

  // `name`: of an abstract unix socket, without its leading zero. Where it can't be had the channel
  // is closed: is_open() says so.
  WorkerChannel(boost::asio::io_context& loop, const std::string& name, Events events);

  bool is_open() const { return listener_.is_open(); }
  void begin_round();  // forgets all workers; requires that they are gone
  void ask_to_stop();  // all workers of the round, those that connect later too
  // Reads what the worker has said until now, and ends its connections.
  LastWords worker_ended(int local_rank);

 private:
  struct Worker {
    std::optional<SharedPage> page;
    std::string report;
    bool is_ready = false;
    size_t connections = 0;
    size_t connected = 0;  // in all, of this round
  };
  struct Peer {
    boost::asio::posix::stream_descriptor socket;
    int local_rank;
    int messages = 0;
    bool is_welcome = false;  // has said hello, has the page
  };

  void watch_listener();
  void accept_some();
  bool accept_one();
  std::optional<int> local_rank_of(int socket) const;
  void watch(uint64_t id);
  void on_readable(uint64_t id);
  bool read_one(Peer& peer);
  bool take(Peer& peer, const channel::Message& message);
  bool welcome(Peer& peer, uint32_t version);
  void drop(uint64_t id);

  boost::asio::io_context& loop_;
  Events events_;
  boost::asio::posix::stream_descriptor listener_;
  Timer pause_;
  std::map<int, Worker> workers_;   // by local rank; those that have connected
  std::map<uint64_t, Peer> peers_;  // by a number of our own
  uint64_t next_peer_ = 0;
  int turned_away_ = 0;  // since the last pause
  bool is_stopping_ = false;
  std::array<uint8_t, channel::kMessageBytes + 1> buffer_{};
  std::shared_ptr<int> life_ =
      std::make_shared<int>();  // shared: handlers ask whether we still are
};

}  // namespace cpprun
