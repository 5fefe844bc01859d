// SharedPage: a WorkerPage in shared memory whose descriptor the agent sends to a worker. Sealed:
// no process can shrink it.
#pragma once

#include <utility>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/worker/worker_page.hpp"

namespace cpprun {

class SharedPage {
 public:
  static Result<SharedPage> make();
  SharedPage(SharedPage&& other) noexcept
      : memory_(std::move(other.memory_)), page_(std::exchange(other.page_, nullptr)) {}
  SharedPage& operator=(SharedPage&&) = delete;
  ~SharedPage();

  WorkerPage& page() const { return *page_; }
  int descriptor() const { return memory_.get(); }

 private:
  SharedPage(UniqueFd memory, WorkerPage* page) : memory_(std::move(memory)), page_(page) {}

  UniqueFd memory_;
  WorkerPage* page_;
};

}  // namespace cpprun
