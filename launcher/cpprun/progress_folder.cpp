#include "launcher/cpprun/progress_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "common/machine/files.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kPythonPath = "PYTHONPATH=";

// In front of what the user has there.
void put_in_front(const std::string& folder, std::vector<std::string>& environment) {
  for (std::string& entry : environment) {
    if (!entry.starts_with(kPythonPath)) continue;
    const std::string rest = entry.substr(kPythonPath.size());
    entry = std::string(kPythonPath) + folder + (rest.empty() ? "" : ":" + rest);
    return;
  }
  environment.push_back(std::string(kPythonPath) + folder);
}

}  // namespace

Result<ProgressFolder> ProgressFolder::make(AgentConfig& config) {
  std::string path = config.temporary_dir + "/cpprun_progress_XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error("--progress=auto: cannot make a folder in " + config.temporary_dir, errno);
  }
  ProgressFolder folder(path);
  const bool is_written =
      write_file(path + "/sitecustomize.py", std::string(progress_source())) &&
      write_file(path + "/cpprun_channel.py", std::string(progress_channel_source()));
  if (!is_written) return system_error("--progress=auto: cannot write to " + path, errno);
  put_in_front(path, config.environment);
  return folder;
}

ProgressFolder::~ProgressFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

ProgressFolder::ProgressFolder(ProgressFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

ProgressFolder& ProgressFolder::operator=(ProgressFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

}  // namespace cpprun
