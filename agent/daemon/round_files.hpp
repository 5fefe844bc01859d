// RoundFiles: makes the log folder of a round and opens its log files, on the I/O thread. A file
// system that does not answer delays a round by limits::kRoundFilesTimeout; the round then starts
// without log and error files.
//
// Thread: the loop's. Owner: the daemon. Calls nothing after its destruction.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/result.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class RoundFiles {
 public:
  // `io`, `config` and `folder` outlive this object. `folder`: of the run; changes to the attempt
  // that was prepared last. `on_ready`: answers prepare().
  RoundFiles(boost::asio::io_context& loop, IoThread& io, const AgentConfig& config,
             LogFolder& folder, std::function<void()> on_ready);
  ~RoundFiles();
  RoundFiles(const RoundFiles&) = delete;

  // Calls on_ready() once the files are there, or cannot be had. Drops those of an earlier call,
  // and its answer. May call on_ready() within this call.
  void prepare(int attempt, int64_t round);

  // The newest answer. made(): an error means that the round has no files; it can start. opened():
  // an error means that it cannot.
  const Status& made() const { return made_; }
  const Status& opened() const { return opened_; }
  const LogFiles& files() const { return files_; }
  const LogFolder& folder() const { return folder_; }

  // Gives up this object's hold on the files, on the I/O thread: close() may block too.
  void release();

 private:
  struct Prepared;

  void on_prepared(uint64_t number, Prepared& prepared);
  void on_late();
  void start_without(const std::string& why);
  void close(LogFiles files);

  IoThread& io_;
  const AgentConfig& config_;
  LogFolder& folder_;
  const std::function<void()> on_ready_;
  Status made_;
  Status opened_;
  LogFiles files_;
  Timer timer_;
  int64_t round_ = 0;
  uint64_t number_ = 0;   // of the answer that counts
  bool is_late_ = false;  // an answer did not come in time, and no other has come since
  const std::shared_ptr<LoopPoster> poster_;  // shared with the tasks
};

}  // namespace cpprun
