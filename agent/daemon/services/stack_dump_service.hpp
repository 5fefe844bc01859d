// StackDumpService: what the workers of this node are doing, for operators who ask. The same
// evidence as before a hang is ended (agent/process/diagnostics/stack_collector.hpp), on a thread
// of its own; nothing is stopped.
//
// Thread: the loop's. Owner: the daemon. One look at a time: it halts workers for moments.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/daemon/loop_poster.hpp"
#include "agent/process/diagnostics/stack_collector.hpp"
#include "rendezvous/protocol/admin/admin_protocol.hpp"

namespace cpprun {

class StackDumpService {
 public:
  using Look = std::function<std::vector<StackTarget>()>;  // at the live workers
  using Reply = std::function<void(std::string body)>;

  StackDumpService(boost::asio::io_context& loop, Look look)
      : look_(std::move(look)), poster_(std::make_shared<LoopPoster>(loop)) {}
  ~StackDumpService() { poster_->close(); }
  StackDumpService(const StackDumpService&) = delete;

  // Of one global rank (`rank`), or of all workers here.
  void ask(const admin::AdminQuery& query, const Reply& reply);

 private:
  Look look_;
  Reply reply_;  // to whoever waits; it holds parts of the loop, so it never leaves its thread
  const std::shared_ptr<LoopPoster> poster_;
};

}  // namespace cpprun
