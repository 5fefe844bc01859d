// The two byte queues of a connection: received bytes that are not parsed yet, and bytes to send.
//
// Both use next to no memory while a connection is idle: short input lies inside of the object, and
// output is assembled in strings of a pool. No sockets here.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/memory_budget.hpp"
#include "rendezvous/store/value.hpp"

namespace cpprun {

// Received bytes, contiguous. Short input lies inside of the object, long input in a block of its
// own, which a store value may keep.
class InputBuffer {
 public:
  static constexpr size_t kInside = 1024;  // a burst of 16 ordinary commands fits

  // `budget` counts the blocks; it outlives all calls, not necessarily this object.
  explicit InputBuffer(const std::shared_ptr<MemoryBudget>& budget) : budget_(budget) {}
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  // Room behind the held bytes, at least one byte. Grows in steps towards `total` held bytes, so
  // that memory use follows the bytes received and not an announced length. Empty: there is no
  // memory, or the budget has no room.
  std::span<uint8_t> space(size_t total);
  // The caller has filled `size` bytes of the last space().
  void commit(size_t size);
  std::span<const uint8_t> held() const { return {data(), held_}; }
  // Drops the first `size` bytes. May throw std::bad_alloc.
  void consume(size_t size);
  // The block that contains held(); null if held() lies inside of this object.
  std::shared_ptr<const void> owner() const { return block_; }
  size_t capacity() const { return block_ ? block_->capacity : kInside; }

 private:
  struct Block {
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();
    explicit Block(std::shared_ptr<MemoryBudget> budget) : charge(std::move(budget)) {}
    uint8_t* data = nullptr;
    size_t capacity = 0;
    MemoryBudget::Charge charge;  // a store value that keeps the block keeps this too
  };

  const uint8_t* data() const { return block_ ? block_->data : inside_.data(); }
  // Throws std::bad_alloc; then nothing has changed.
  void grow(size_t capacity);
  bool try_grow(size_t capacity);

  const std::shared_ptr<MemoryBudget>& budget_;
  std::shared_ptr<Block> block_;  // shared with store values that lie in it
  size_t held_ = 0;
  bool wants_input_ = false;  // the last read filled its room: more input is likely
  std::array<uint8_t, kInside> inside_;
};

// Strings shared by the outboxes of one thread. An outbox takes one to assemble a reply and gives
// it back when everything is sent. So idle connections hold none, and a reply in the steady state
// allocates nothing.
class StringPool {
 public:
  std::unique_ptr<std::string> take();
  // Keeps the memory unless it is large.
  void give(std::unique_ptr<std::string> used);

 private:
  std::vector<std::unique_ptr<std::string>> kept_;
  size_t bytes_ = 0;  // of kept_
};

// Bytes to send: pieces in order, and an open tail.
class Outbox {
 public:
  // `string_pool` outlives all calls, not necessarily this object.
  explicit Outbox(StringPool& string_pool) : string_pool_(string_pool) {}

  // The caller may append; appended bytes count at once.
  std::string& tail() {
    if (!tail_) tail_ = string_pool_.take();
    return *tail_;
  }
  void add(const SharedBytes& bytes);

  bool empty() const { return size() == 0; }
  size_t size() const { return earlier_ + tail_view().size() - done_; }
  // The part of size() that lies in memory of this object; the rest is shared.
  size_t copied() const { return earlier_ - shared_ + tail_view().size(); }
  // Fills `parts` with the first unsent bytes; returns the number of parts.
  size_t gather(std::span<iovec> parts) const;
  // Drops the first `size` unsent bytes.
  void sent(size_t size);
  void clear();

 private:
  struct Piece {
    std::string own;
    SharedBytes shared;
    std::string_view view() const { return shared.owner ? shared.bytes : std::string_view(own); }
  };

  std::string_view tail_view() const { return tail_ ? *tail_ : std::string_view(); }

  StringPool& string_pool_;
  std::vector<Piece> pieces_;          // before the tail
  size_t first_ = 0;                   // first piece that is not sent completely
  size_t earlier_ = 0;                 // bytes in pieces_ from first_ on
  size_t shared_ = 0;                  // of these, in shared pieces
  size_t done_ = 0;                    // sent bytes of the first piece (or the tail)
  std::unique_ptr<std::string> tail_;  // null: empty
};

}  // namespace cpprun
