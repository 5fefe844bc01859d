// SharedPage: a WorkerPage in memory of its own that can be handed to another process, and that
// nobody can make shorter. One owner.
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
