// ArenaChecksums: computes crc32s of ranges of arenas on threads of its own, for workers whose
// language is slow at it. The agent reads an arena in blocks and never maps it. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/channel/arenas.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/result.hpp"

namespace cpprun {

class ArenaChecksums {
 public:
  // Calls `done` on the loop, unless this object has been destroyed.
  using Done = std::function<void(const Result<std::vector<uint32_t>>&)>;

  explicit ArenaChecksums(boost::asio::io_context& loop)
      : poster_(std::make_shared<LoopPoster>(loop)) {}
  ~ArenaChecksums() { poster_->close(); }
  ArenaChecksums(const ArenaChecksums&) = delete;

  // `ranges`: as in channel::ChecksumRequest. Error: the request makes no sense, or the system
  // cannot start a thread; then nothing is called.
  Status compute(Arenas::View arena, const std::string& ranges, Done done);

 private:
  const std::shared_ptr<LoopPoster> poster_;  // shared with the threads
};

}  // namespace cpprun
