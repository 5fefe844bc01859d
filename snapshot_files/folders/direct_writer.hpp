// DirectWriter: writes blocks to a file that is open with O_DIRECT, past the page cache: many
// neighbours by one call. Private to folders.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::snapshot_files {

// Ranges of memory that one system call writes: IOV_MAX of Linux.
inline constexpr size_t kWritePartsMost = 1024;

class DirectWriter {
 public:
  // Aligned memory for copies of what is not aligned; made on demand, and kept by the caller.
  using Memory = std::unique_ptr<std::byte, void (*)(void*)>;

  // `offset`: a multiple of archive::kBlock, where the first byte goes.
  DirectWriter(int fd, uint64_t offset, Memory& memory)
      : fd_(fd), offset_(offset), memory_(memory) {}

  // What follows the bytes before: whole blocks, which stay until flush(). False: a write has
  // failed, and nothing may follow.
  bool add(archive::ConstBytes blocks);
  // Writes what add() has kept.
  bool flush();
  // Bytes written.
  uint64_t done() const { return done_; }

 private:
  bool is_full() const;
  // A copy in aligned memory of as many bytes as it has room for; empty: there is no memory.
  archive::ConstBytes copied(archive::ConstBytes blocks);
  void drop(size_t bytes);

  const int fd_;
  const uint64_t offset_;
  Memory& memory_;
  std::vector<iovec> parts_;
  size_t bytes_ = 0;   // of parts_
  size_t copied_ = 0;  // of them in memory_
  uint64_t done_ = 0;
};

}  // namespace cpprun::snapshot_files
