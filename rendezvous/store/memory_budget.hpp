// MemoryBudget: how much memory the stores of one server and its connections may use together, so
// that clients cannot use up the memory of the machine.
//
// It only counts; a caller asks has_room() before it takes memory. The server, its connections and
// its stores share it, and so does each value that a connection still has to send. Thread: the
// server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace cpprun {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit = SIZE_MAX) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  size_t limit() const { return limit_; }
  size_t used() const { return used_; }
  bool has_room(size_t bytes) const { return used_ <= limit_ && bytes <= limit_ - used_; }

  // Bytes that count against a budget as long as this object lives. Without a budget it counts
  // nothing.
  class Charge {
   public:
    Charge() = default;
    explicit Charge(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    ~Charge() { set(0); }

    size_t bytes() const { return bytes_; }
    void set(size_t bytes) {
      if (budget_) add(bytes - bytes_);
    }
    // Sizes wrap, so that the difference of two sizes may be "negative".
    void add(size_t bytes) {
      if (!budget_) return;
      bytes_ += bytes;
      budget_->used_ += bytes;
    }

   private:
    std::shared_ptr<MemoryBudget> budget_;
    size_t bytes_ = 0;
  };

 private:
  const size_t limit_;
  size_t used_ = 0;
};

}  // namespace cpprun
