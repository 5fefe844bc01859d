#include "rendezvous/store/value.hpp"

#include <algorithm>
#include <utility>

namespace cpprun {

void Value::share(std::string bytes, const Budget& budget) {
  growing_ = std::make_shared<Text>(std::move(bytes), budget);
  shared_ = {growing_, growing_->bytes};
}

void Value::assign(std::string_view bytes, const Budget& budget) {
  if (bytes.size() >= kSharedFrom) {
    share(std::string(bytes), budget);
    std::string().swap(own_);  // an assignment would keep the memory
    return;
  }
  growing_.reset();
  shared_ = {};
  own_.assign(bytes);
}

void Value::share_now(const Budget& budget) {
  if (!shared_.owner) share(std::exchange(own_, {}), budget);
}

void Value::adopt(SharedBytes bytes) {
  growing_.reset();
  std::string().swap(own_);
  shared_ = std::move(bytes);
}

size_t Value::memory_to_append(size_t size) const {
  if (!shared_.owner) return own_.size() + size;
  if (!may_extend()) return shared_.bytes.size() + size;
  const size_t capacity = growing_->bytes.capacity();
  const size_t all = shared_.bytes.size() + size;
  return all <= capacity ? 0 : std::max(2 * capacity, all) - capacity;
}

void Value::append(std::string_view bytes, const Budget& budget) {
  if (!shared_.owner) {
    if (own_.size() + bytes.size() < kSharedFrom) {
      own_.append(bytes);
      return;
    }
    std::string all;
    all.reserve(own_.size() + bytes.size());
    share(all.append(own_).append(bytes), budget);
    std::string().swap(own_);
    return;
  }
  if (!may_extend()) {
    // A connection still sends the old bytes, or they lie in a receive buffer.
    std::string all;
    all.reserve(shared_.bytes.size() + bytes.size());
    return share(all.append(shared_.bytes).append(bytes), budget);
  }
  growing_->bytes.append(bytes);
  growing_->charge.set(growing_->bytes.capacity());
  shared_.bytes = growing_->bytes;
}

}  // namespace cpprun
