#include "rendezvous/store/value.hpp"

#include <utility>

namespace cpprun {

void Value::assign(std::string_view bytes) {
  if (bytes.size() >= kSharedFrom) {
    growing_ = std::make_shared<std::string>(bytes);
    std::string().swap(own_);  // an assignment would keep the memory
    shared_ = {growing_, *growing_};
    return;
  }
  growing_.reset();
  shared_ = {};
  own_.assign(bytes);
}

void Value::adopt(SharedBytes bytes) {
  growing_.reset();
  std::string().swap(own_);
  shared_ = std::move(bytes);
}

void Value::append(std::string_view bytes) {
  if (!shared_.owner) {
    if (own_.size() + bytes.size() < kSharedFrom) {
      own_.append(bytes);
      return;
    }
    growing_ = std::make_shared<std::string>(std::move(own_));
    own_ = std::string();
  } else if (!growing_ || shared_.owner.use_count() > 2) {
    // A connection still sends the old bytes, or they lie in a receive buffer.
    growing_ = std::make_shared<std::string>(shared_.bytes);
  }
  shared_ = {};
  growing_->append(bytes);
  shared_ = {growing_, *growing_};
}

}  // namespace cpprun
