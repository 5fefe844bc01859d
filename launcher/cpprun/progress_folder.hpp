// ProgressFolder: the files of --progress=auto, in a temporary folder that the workers have in
// front of PYTHONPATH: launcher/cpprun/progress/sitecustomize.py and the client of the worker
// channel. The folder goes with this object. Not for loop threads.
#pragma once

#include <string>
#include <string_view>

#include "agent/core/config.hpp"
#include "common/result.hpp"

namespace cpprun {

class ProgressFolder {
 public:
  // No folder.
  ProgressFolder() = default;
  // Makes the folder, and puts it into the environment of the workers.
  static Result<ProgressFolder> make(AgentConfig& config);
  ~ProgressFolder();
  ProgressFolder(ProgressFolder&& other) noexcept;
  ProgressFolder& operator=(ProgressFolder&& other) noexcept;

 private:
  explicit ProgressFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: none
};

// The two files, embedded at build time.
std::string_view progress_source();
std::string_view progress_channel_source();

}  // namespace cpprun
