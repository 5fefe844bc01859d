// ZipDirectory: which records a zip file holds, and where. Stored records only (torch.save does not
// compress); zip64. Bytes may be hostile: records lie within the file and apart, counts and sizes
// are limited.
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
  uint64_t ends_before = 0;  // where the next record or the directory begins
  uint32_t crc32 = 0;
};

class ZipDirectory {
 public:
  // Error (Protocol, or the source's own) names the source and what is wrong with it.
  static Result<ZipDirectory> read(const Source& source);

  // Null for a name that is not there. Names are without the folder that torch puts in front.
  const Record* find(std::string_view name) const;
  // Sorted by name.
  const std::map<std::string, Record, std::less<>>& records() const { return records_; }

 private:
  std::map<std::string, Record, std::less<>> records_;
};

// Where the record's data begins: behind its own header, which is read and checked.
Result<uint64_t> data_place(const Source& source, const Record& record);

}  // namespace cpprun::archive
