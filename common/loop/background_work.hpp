// BackgroundWork: runs work on threads of its own and passes the results to the loop. Thread: the
// loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <utility>

#include "common/loop/loop_poster.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {

class BackgroundWork {
 public:
  explicit BackgroundWork(boost::asio::io_context& loop)
      : poster_(std::make_shared<LoopPoster>(loop)) {}
  ~BackgroundWork() { poster_->close(); }
  BackgroundWork(const BackgroundWork&) = delete;

  // Calls `work` on a new thread, and then `done` with its result on the loop, unless this object
  // has been destroyed. `work` must own everything it uses. Calls neither after an error.
  template <class Work, class Done>
  Status run(Work work, Done done) {
    return start_detached_thread(
        [way = poster_, work = std::move(work), done = std::move(done)]() mutable {
          LoopPoster::post(way, [done, result = work()] { done(result); });
        });
  }
  // The same, for work whose `done` is always called: with `failed(error)` if the system cannot
  // start a thread. Never calls `done` at once.
  template <class Work, class Done, class Failed>
  void run_or(Work work, Done done, Failed failed) {
    const Status ok = run(std::move(work), done);
    if (!ok) LoopPoster::post(poster_, [done, result = failed(ok)] { done(result); });
  }
  // For results before the end.
  const std::shared_ptr<LoopPoster>& poster() const { return poster_; }

 private:
  const std::shared_ptr<LoopPoster> poster_;  // shared with the threads
};

}  // namespace cpprun
