// MergedFile: a new tensor file that takes its storages from others. Private to convert.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun::ctl {

class MergedFile {
 public:
  // The tree of `file`, with storages renamed so that those of several files do not meet.
  pickle::Value take(std::shared_ptr<const archive::TensorFile> file);

  // Reads each storage (its crc32 is verified), and writes it.
  Result<archive::Written> write(archive::Output& output, const pickle::Value& value) const;

 private:
  struct From {
    std::shared_ptr<const archive::TensorFile> file;
    std::string storage;
  };
  std::map<std::string, From> storages_;  // by the new name
  size_t files_ = 0;
};

}  // namespace cpprun::ctl
