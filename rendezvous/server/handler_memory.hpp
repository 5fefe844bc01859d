// Memory for one pending Asio operation, inside of the object that waits for it.
// Asio recycles only two freed operations, so with many ready connections each read would allocate.
// Not thread-safe; its owner outlives the operation, which holds if the handler owns the owner.
#pragma once

#include <cstddef>
#include <new>

namespace cpprun {

class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* allocate(size_t size) {
    if (is_taken_ || size > sizeof inside_) return ::operator new(size);
    is_taken_ = true;
    return inside_;
  }
  void deallocate(void* at) {
    if (at != inside_) return ::operator delete(at);
    is_taken_ = false;
  }

 private:
  static constexpr size_t kInside = 256;  // a read needs 240 bytes in Asio 1.81
  alignas(std::max_align_t) std::byte inside_[kInside];
  bool is_taken_ = false;
};

// The allocator for Asio. Requires: the memory outlives all copies.
template <class T>
class HandlerAllocator {
 public:
  using value_type = T;

  explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
  template <class U>
  HandlerAllocator(const HandlerAllocator<U>& other) : memory_(other.memory_) {}
  template <class U>
  bool operator==(const HandlerAllocator<U>& other) const {
    return memory_ == other.memory_;
  }

  T* allocate(size_t count) { return static_cast<T*>(memory_->allocate(count * sizeof(T))); }
  void deallocate(T* at, size_t) { memory_->deallocate(at); }

 private:
  template <class U>
  friend class HandlerAllocator;
  HandlerMemory* memory_;
};

}  // namespace cpprun
