// MergedFile: a new tensor file with the storages of several others. Private to convert.
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
  // Returns the tree of `file`, with its storages renamed so that those of several files differ.
  pickle::Value take(std::shared_ptr<const archive::TensorFile> file);

  // Copies each storage; verifies its crc32.
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
