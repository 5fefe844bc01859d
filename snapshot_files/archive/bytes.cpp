#include "snapshot_files/archive/bytes.hpp"

#include <cstring>

namespace cpprun::archive {

Result<std::string> Source::read_text(uint64_t offset, size_t bytes) const {
  std::string text(bytes, '\0');
  if (Status read = read_at(offset, writable_bytes_of(text)); !read) return read.error();
  return text;
}

Status Output::write_all(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    if (Status wrote = write_at(piece.offset, piece.bytes); !wrote) return wrote;
  }
  return {};
}

Status MemorySource::read_at(uint64_t offset, Bytes into) const {
  if (offset > bytes_.size() || into.size() > bytes_.size() - offset) {
    return Error{ErrorKind::Protocol, name_ + " ends before what is wanted of it"};
  }
  if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
  return {};
}

}  // namespace cpprun::archive
