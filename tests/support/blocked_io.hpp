// BlockedIo: an I/O thread that stands in a task until it is released, as on a file system that
// does not answer.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <utility>

#include "common/thread/io_thread.hpp"

namespace cpprun::test {

class BlockedIo {
 public:
  BlockedIo() {
    EXPECT_TRUE(io->post([end = end_] { end.wait(); }));
  }
  ~BlockedIo() { release(); }
  BlockedIo(const BlockedIo&) = delete;

  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }

  const std::shared_ptr<IoThread> io = std::make_shared<IoThread>();

 private:
  std::promise<void> released_;
  std::shared_future<void> end_ = released_.get_future().share();
  bool is_released_ = false;
};

}  // namespace cpprun::test
