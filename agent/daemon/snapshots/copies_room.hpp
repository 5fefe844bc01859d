// CopiesRoom: what an agent does for --snapshot-replicas: keeps copies of its neighbour's shares in
// memory, and brings its own back from a neighbour when it comes in the place of a node that was
// lost. Peers are waited for on threads of their own; everything comes back on the loop.
//
// Thread: the loop's. Owner: the daemon. Callbacks are never called from inside a member function,
// and never after the end of this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/daemon/snapshots/share_copy.hpp"
#include "agent/daemon/way_back.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class CopiesRoom {
 public:
  struct Events {
    std::function<void()> on_sought;  // seek() is over, whatever came of it
    std::function<void(bool is_rare, const std::string&)> on_note;  // at INFO, else DEBUG
    std::function<void(const std::string&)> on_warning;             // worth a line for people
  };

  // `workers`: of this node. Half of the memory for snapshots is for the copies.
  CopiesRoom(boost::asio::io_context& loop, size_t workers, Events events);
  ~CopiesRoom();
  CopiesRoom(const CopiesRoom&) = delete;

  const ShareShelves& shelves() const { return shelves_; }

  // Of nobody's shares: nothing. What was kept before stays until there are newer ones.
  void keep(const std::optional<control::Peer>& of, const std::string& secret);
  // The shares of this node's ranks of `world` from the neighbour, unless they are here.
  void seek(const control::Peer& at, const control::World& world);
  void drop_seek();

 private:
  void on_copied(const control::Peer& of, int64_t step);
  void on_kept(const control::Peer& of, const CopyCount& count);
  void on_trouble(const control::Peer& of, const std::string& why);
  void on_taken_back(const control::Peer& at, const TakenBack& back);

  const size_t workers_;
  const ShareShelves shelves_;  // shared with the threads
  const Events events_;
  const std::shared_ptr<WayBack> way_;  // shared with the threads
  std::shared_ptr<Stopper> keeping_;    // of what runs, shared with its thread
  std::shared_ptr<Stopper> seeking_;
  bool is_trouble_said_ = false;
};

}  // namespace cpprun
