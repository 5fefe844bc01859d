// ZipDirectory: the names and positions of a zip file's records. Only stored records (torch.save
// does not compress); zip64. The file may be hostile: the reader checks that records lie within the
// file and do not overlap, and limits counts and sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::archive {

struct Record {
  uint64_t header_at = 0;
  uint64_t bytes = 0;
  uint64_t ends_before = 0;  // start of the next record or of the directory
  uint32_t crc32 = 0;
};

class ZipDirectory {
 public:
  // Error (Protocol, or the source's own): names the source and the problem.
  static Result<ZipDirectory> read(const Source& source);

  // Null for an unknown name. Names omit the folder that torch puts in front.
  const Record* find(std::string_view name) const;
  // Sorted by name.
  const std::map<std::string, Record, std::less<>>& records() const { return records_; }

 private:
  std::map<std::string, Record, std::less<>> records_;
};

// The offset of the record's data, after the local header, which this reads and checks.
Result<uint64_t> data_place(const Source& source, const Record& record);

}  // namespace cpprun::archive
