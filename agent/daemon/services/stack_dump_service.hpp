// StackDumpService: collects the stacks of this node's workers for an admin query
// (agent/process/diagnostics/stack_collector.hpp), on a thread of its own. The workers run on.
//
// Thread: the loop's. Owner: the daemon. Serves one query at a time, because each halts the workers
// for moments.
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
  using Sample = std::function<std::vector<StackTarget>()>;  // samples the live workers
  using Reply = std::function<void(std::string body)>;

  StackDumpService(boost::asio::io_context& loop, Sample sample)
      : sample_(std::move(sample)), poster_(std::make_shared<LoopPoster>(loop)) {}
  ~StackDumpService() { poster_->close(); }
  StackDumpService(const StackDumpService&) = delete;

  // The parameter `rank` selects one global rank; without it all workers of this node.
  void ask(const admin::AdminQuery& query, const Reply& reply);

 private:
  Sample sample_;
  Reply reply_;  // of the running query; it holds objects of the loop and stays on its thread
  const std::shared_ptr<LoopPoster> poster_;
};

}  // namespace cpprun
