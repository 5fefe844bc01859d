#include "snapshot_files/archive/slice_source.hpp"

#include <utility>

#include "common/check.hpp"

namespace cpprun::archive {

SliceSource::SliceSource(std::shared_ptr<const Source> whole, uint64_t offset, uint64_t bytes,
                         std::string name)
    : whole_(std::move(whole)), offset_(offset), bytes_(bytes), name_(std::move(name)) {
  CPPRUN_CHECK(bytes <= UINT64_MAX - offset);
}

Status SliceSource::read_at(uint64_t offset, Bytes into) const {
  if (offset > bytes_ || into.size() > bytes_ - offset) {
    return Error{ErrorKind::Protocol, name_ + " ends before what is wanted of it"};
  }
  return whole_->read_at(offset_ + offset, into);
}

}  // namespace cpprun::archive
