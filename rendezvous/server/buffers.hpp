// The two byte queues of a connection: what came in and is not understood yet, what goes out and is
// not sent yet.
//
// Both hold next to nothing while a connection is idle: input lies inside of the object unless it
// is long, and output is put together in memory that is lent. Neither knows sockets.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/store/value.hpp"

namespace cpprun {

// Received bytes, contiguous. Short ones lie inside of the object, long ones in a block of their
// own that can be handed on to somebody who wants to keep it.
class InputBuffer {
 public:
  static constexpr size_t kInside = 1024;  // a burst of 16 ordinary commands fits

  InputBuffer() = default;
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  // Room behind the bytes held, at least one byte. Grows towards `total` bytes held in all, in
  // steps, so that memory follows what really came and not what somebody announced.
  std::span<uint8_t> space(size_t total);
  // `size` bytes of the last space() were filled.
  void commit(size_t size);
  std::span<const uint8_t> held() const { return {data(), held_}; }
  // The first `size` bytes are done with.
  void consume(size_t size);
  // The block that held() lies in; null if it lies inside of this object.
  std::shared_ptr<const void> owner() const { return block_; }
  size_t capacity() const { return block_ ? block_->capacity : kInside; }

 private:
  struct Block {
    Block() = default;
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();
    uint8_t* data = nullptr;
    size_t capacity = 0;
  };

  const uint8_t* data() const { return block_ ? block_->data : inside_.data(); }
  void grow(size_t capacity);

  std::shared_ptr<Block> block_;  // shared with values of the store that lie in it
  size_t held_ = 0;
  bool wants_input_ = false;  // the last read filled all its room: more is likely to be there
  std::array<uint8_t, kInside> inside_;
};

// Strings that outboxes of one thread lend each other: whoever begins to put a reply together takes
// one, and brings it back when all is sent. So idle connections hold none, and a reply in the
// steady state needs no new memory.
class StringPool {
 public:
  // An empty one.
  std::unique_ptr<std::string> take();
  // Keeps its memory for later, unless that is much.
  void give(std::unique_ptr<std::string> used);

 private:
  std::vector<std::unique_ptr<std::string>> kept_;
  size_t bytes_ = 0;  // of kept_
};

// Bytes to send: pieces in order, the last of them open at its end.
class Outbox {
 public:
  // `string_pool` outlives all calls, not this object.
  explicit Outbox(StringPool& string_pool) : string_pool_(string_pool) {}

  // Where to append. Whatever is appended counts at once.
  std::string& tail() {
    if (!tail_) tail_ = string_pool_.take();
    return *tail_;
  }
  void add(const SharedBytes& bytes);

  bool empty() const { return size() == 0; }
  size_t size() const { return earlier_ + tail_view().size() - done_; }
  // The first unsent bytes as at most `parts.size()` pieces; returns how many pieces.
  size_t gather(std::span<iovec> parts) const;
  // The first `size` unsent bytes are gone.
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
  size_t first_ = 0;                   // of the pieces that are not sent whole
  size_t earlier_ = 0;                 // bytes in pieces_ from first_ on
  size_t done_ = 0;                    // bytes of the first piece (or the tail) that are sent
  std::unique_ptr<std::string> tail_;  // null: nothing there
};

}  // namespace cpprun
