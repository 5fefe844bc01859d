#include "snapshot_files/folders/direct_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot_files {
namespace {

using archive::kBlock;

// At the end of each write the disk wakes the writing thread, which interrupts the training on its
// core: with tensors of 16 MiB that is 2.4 times less often than with writes of 4 MiB.
constexpr size_t kWriteMost = 64 << 20;
constexpr size_t kCopiesMost = 4 << 20;

bool is_aligned(const std::byte* address) {
  return reinterpret_cast<uintptr_t>(address) % kBlock == 0;
}

}  // namespace

bool DirectWriter::is_full() const {
  return bytes_ == kWriteMost || copied_ == kCopiesMost || parts_.size() == kWritePartsMost;
}

bool DirectWriter::add(archive::ConstBytes blocks) {
  while (!blocks.empty()) {
    if (is_full() && !flush()) return false;
    archive::ConstBytes next = blocks.first(std::min(blocks.size(), kWriteMost - bytes_));
    if (!is_aligned(next.data())) next = copied(next);
    if (next.empty()) return false;
    parts_.push_back({const_cast<std::byte*>(next.data()), next.size()});
    bytes_ += next.size();
    blocks = blocks.subspan(next.size());
  }
  return true;
}

archive::ConstBytes DirectWriter::copied(archive::ConstBytes blocks) {
  if (memory_ == nullptr) {
    memory_ = {static_cast<std::byte*>(std::aligned_alloc(kBlock, kCopiesMost)), &std::free};
  }
  if (memory_ == nullptr) return {};
  const size_t bytes = std::min(blocks.size(), kCopiesMost - copied_);
  std::byte* const to = memory_.get() + copied_;
  std::memcpy(to, blocks.data(), bytes);
  copied_ += bytes;
  return {to, bytes};
}

bool DirectWriter::flush() {
  while (bytes_ > 0) {
    const ssize_t put = ::pwritev(fd_, parts_.data(), static_cast<int>(parts_.size()),
                                  static_cast<off_t>(offset_ + done_));
    if (put < 0 && errno == EINTR) continue;
    const size_t written = static_cast<size_t>(std::max<ssize_t>(put, 0));
    done_ += written;
    const bool continues = written > 0 && written % kBlock == 0;
    drop(continues ? written : bytes_);
    if (!continues) return false;
  }
  copied_ = 0;
  return true;
}

// From the front of parts_.
void DirectWriter::drop(size_t bytes) {
  bytes_ -= bytes;
  auto part = parts_.begin();
  for (; part != parts_.end() && bytes >= part->iov_len; ++part) bytes -= part->iov_len;
  if (part != parts_.end()) {
    part->iov_base = static_cast<std::byte*>(part->iov_base) + bytes;
    part->iov_len -= bytes;
  }
  parts_.erase(parts_.begin(), part);
}

}  // namespace cpprun::snapshot_files
