// RealFile: an open file of the real disk. Private.
#pragma once

#include <memory>
#include <string>

#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun::snapshot_files {

class RealFile final : public File {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~RealFile() override;
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  const std::string& name() const override { return path_; }
  Result<uint64_t> size() const override;
  Status read_at(uint64_t offset, archive::Bytes into) const override;
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override;
  Status reserve(uint64_t bytes) override;
  Status sync() override;

 private:
  bool opens_directly();
  // Writes past the page cache. Returns the bytes written; fewer than given where it cannot go on.
  size_t write_directly(uint64_t offset, archive::ConstBytes blocks);

  const int fd_;
  int direct_fd_ = -1;  // the same file with O_DIRECT; -1: not opened, or not supported
  bool is_direct_refused_ = false;
  std::unique_ptr<std::byte, void (*)(void*)> bounce_{nullptr, nullptr};  // aligned; made on demand
  const std::string path_;
};

}  // namespace cpprun::snapshot_files
