// StackRoom: what the workers of this node are doing, for operators who ask. The same evidence as
// before a hang is ended (agent/process/evidence.hpp), on a thread of its own; nothing is stopped.
//
// Thread: the loop's. Owner: the daemon. One look at a time: it halts workers for moments.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/operator_words.hpp"
#include "agent/process/evidence.hpp"

namespace cpprun {

class StackRoom {
 public:
  using Look = std::function<std::vector<Witness>()>;  // at the live workers
  using Reply = std::function<void(std::string body)>;

  StackRoom(boost::asio::io_context& loop, Look look) : loop_(loop), look_(std::move(look)) {}

  // Of one global rank (`rank`), or of all workers here.
  void ask(const operators::Question& question, const Reply& reply);

 private:
  boost::asio::io_context& loop_;
  Look look_;
  bool is_looking_ = false;
  std::shared_ptr<int> life_ =
      std::make_shared<int>();  // shared: handlers ask whether we still are
};

}  // namespace cpprun
