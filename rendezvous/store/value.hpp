// A value of the store: its own bytes or, if large, shared memory that is constant from then on.
// Large values are shared to avoid copies: a SET may keep the buffer in which it was received, and
// a connection's output may hold the value until the peer has read it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rendezvous/store/memory_budget.hpp"

namespace cpprun {

// `owner` keeps `bytes` alive. Shared by the store and every connection that still has to send the
// value.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

class Value {
 public:
  // From this size on a value is shared instead of copied into each reply.
  static constexpr size_t kSharedFrom = 8 * 1024;

  Value() = default;

  std::string_view view() const { return shared_.owner ? shared_.bytes : std::string_view(own_); }
  // Null unless the value is large, or share_now() was called.
  const SharedBytes* shared() const { return shared_.owner ? &shared_ : nullptr; }

  // Memory of this value alone, which its owner counts. A large value counts itself, until the last
  // connection that holds it has sent it.
  size_t own_memory() const { return shared_.owner ? 0 : own_.capacity(); }

  // A small value whose memory takes `size` bytes without a change; then overwrite() is quicker
  // than assign().
  bool has_room_for(size_t size) const {
    return !shared_.owner && size < kSharedFrom && size <= own_.capacity();
  }
  void overwrite(std::string_view bytes) { own_.assign(bytes); }

  // `budget`: of a large value; null: it is not counted.
  using Budget = std::shared_ptr<MemoryBudget>;
  void assign(std::string_view bytes, const Budget& budget);
  // Shares a small value, too, without a copy, until it is assigned again.
  void share_now(const Budget& budget);
  // Takes the bytes without a copy. The caller that allocated the memory has counted it.
  void adopt(SharedBytes bytes);
  void append(std::string_view bytes, const Budget& budget);
  // Memory that append() needs beyond what the value has.
  size_t memory_to_append(size_t size) const;

 private:
  struct Text {
    Text(std::string text, const Budget& budget) : bytes(std::move(text)), charge(budget) {
      charge.set(bytes.capacity());
    }
    std::string bytes;
    MemoryBudget::Charge charge;
  };

  bool may_extend() const { return growing_ && shared_.owner.use_count() <= 2; }
  void share(std::string bytes, const Budget& budget);

  std::string own_;
  SharedBytes shared_;
  // What shared_ points into, if append() may extend it.
  std::shared_ptr<Text> growing_;
};

}  // namespace cpprun
