// StackRoom: what the workers of this node are doing, for operators who ask. The same evidence as
// before a hang is ended (agent/process/diagnostics/evidence.hpp), on a thread of its own; nothing
// is stopped.
//
// Thread: the loop's. Owner: the daemon. One look at a time: it halts workers for moments.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/daemon/way_back.hpp"
#include "agent/process/diagnostics/evidence.hpp"
#include "rendezvous/protocol/admin/operator_words.hpp"

namespace cpprun {

class StackRoom {
 public:
  using Look = std::function<std::vector<Witness>()>;  // at the live workers
  using Reply = std::function<void(std::string body)>;

  StackRoom(boost::asio::io_context& loop, Look look)
      : look_(std::move(look)), way_(std::make_shared<WayBack>(loop)) {}
  ~StackRoom() { way_->close(); }
  StackRoom(const StackRoom&) = delete;

  // Of one global rank (`rank`), or of all workers here.
  void ask(const operators::Question& question, const Reply& reply);

 private:
  Look look_;
  Reply reply_;  // to whoever waits; it holds parts of the loop, so it never leaves its thread
  const std::shared_ptr<WayBack> way_;
};

}  // namespace cpprun
