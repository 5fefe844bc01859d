#include "rendezvous/server/buffers.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "common/check.hpp"

namespace cpprun {
namespace {

constexpr size_t kBurst = 16 * 1024;         // for a peer that sends faster than we read
constexpr size_t kWholeAtOnce = 256 * 1024;  // allocate announced sizes up to this at once
constexpr size_t kSparesMax = 256 * 1024;    // memory of unused pooled strings
constexpr size_t kCompactFrom = 64 * 1024;

}  // namespace

InputBuffer::Block::~Block() { std::free(data); }

std::span<uint8_t> InputBuffer::space(size_t total) {
  size_t wanted = std::max(total, held_ + 1);
  if (wants_input_) wanted = std::max(wanted, held_ + kBurst);
  if (wanted > capacity()) {
    const size_t step =
        wanted <= kWholeAtOnce ? wanted : std::min(wanted, std::max(kWholeAtOnce, 2 * capacity()));
    const size_t counted = block_ ? block_->capacity : 0;
    // Without memory the room that is left still does for short commands.
    const bool has_grown = budget_->has_room(step - counted) && try_grow(step);
    if (!has_grown && capacity() == held_) return {};
  }
  uint8_t* start = block_ ? block_->data : inside_.data();
  return {start + held_, capacity() - held_};
}

bool InputBuffer::try_grow(size_t capacity) {
  try {
    grow(capacity);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// realloc moves large blocks with mremap, without a copy.
void InputBuffer::grow(size_t capacity) {
  if (!block_) {
    auto block = std::make_shared<Block>(budget_);
    block->data = static_cast<uint8_t*>(std::malloc(capacity));
    if (block->data == nullptr) throw std::bad_alloc();
    std::memcpy(block->data, inside_.data(), held_);
    block->capacity = capacity;
    block->charge.set(capacity);
    block_ = std::move(block);
    return;
  }
  CPPRUN_CHECK(block_.use_count() == 1);
  auto* moved = static_cast<uint8_t*>(std::realloc(block_->data, capacity));
  if (moved == nullptr) throw std::bad_alloc();
  block_->data = moved;
  block_->capacity = capacity;
  block_->charge.set(capacity);
}

void InputBuffer::commit(size_t size) {
  wants_input_ = held_ + size == capacity();
  held_ += size;
  CPPRUN_CHECK(held_ <= capacity());
}

void InputBuffer::consume(size_t size) {
  CPPRUN_CHECK(size <= held_);
  size_t rest = held_ - size;
  if (!block_) {
    if (size != 0) std::memmove(inside_.data(), inside_.data() + size, rest);
    held_ = rest;
    return;
  }
  bool is_shared = block_.use_count() > 1;
  bool is_oversized = rest <= kInside && size != 0;
  if (!is_shared && !is_oversized) {
    if (size != 0) std::memmove(block_->data, block_->data + size, rest);
    held_ = rest;
    return;
  }
  std::shared_ptr<Block> old = std::move(block_);
  held_ = 0;
  if (rest > kInside) grow(rest);
  std::memcpy(block_ ? block_->data : inside_.data(), old->data + size, rest);
  held_ = rest;
}

std::unique_ptr<std::string> StringPool::take() {
  if (kept_.empty()) return std::make_unique<std::string>();
  std::unique_ptr<std::string> taken = std::move(kept_.back());
  kept_.pop_back();
  bytes_ -= sizeof *taken + taken->capacity();
  return taken;
}

void StringPool::give(std::unique_ptr<std::string> used) {
  size_t size = sizeof *used + used->capacity();
  if (bytes_ + size > kSparesMax) return;
  used->clear();
  bytes_ += size;
  kept_.push_back(std::move(used));
}

void Outbox::add(const SharedBytes& bytes) {
  if (bytes.bytes.empty()) return;
  if (!tail_view().empty()) {
    earlier_ += tail_->size();
    pieces_.push_back({std::move(*tail_), {}});
    tail_->clear();
  }
  earlier_ += bytes.bytes.size();
  shared_ += bytes.bytes.size();
  pieces_.push_back({{}, bytes});
}

size_t Outbox::gather(std::span<iovec> parts) const {
  size_t count = 0;
  size_t skip = done_;
  auto put = [&](std::string_view bytes) {
    bytes.remove_prefix(skip);
    skip = 0;
    parts[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
  };
  for (size_t i = first_; i < pieces_.size() && count < parts.size(); ++i) put(pieces_[i].view());
  if (count < parts.size() && tail_view().size() > skip) put(*tail_);
  return count;
}

void Outbox::sent(size_t size) {
  CPPRUN_CHECK(size <= this->size());
  done_ += size;
  while (first_ < pieces_.size() && done_ >= pieces_[first_].view().size()) {
    size_t piece = pieces_[first_].view().size();
    done_ -= piece;
    earlier_ -= piece;
    if (pieces_[first_].shared.owner) shared_ -= piece;
    const Piece gone = std::move(pieces_[first_++]);
  }
  if (empty()) return clear();
  if (first_ == pieces_.size() && done_ >= kCompactFrom && done_ >= tail_->size() / 2) {
    tail_->erase(0, done_);
    done_ = 0;
  }
}

void Outbox::clear() {
  first_ = earlier_ = shared_ = done_ = 0;
  if (!pieces_.empty()) pieces_ = std::vector<Piece>();
  if (tail_) string_pool_.give(std::move(tail_));
}

}  // namespace cpprun
