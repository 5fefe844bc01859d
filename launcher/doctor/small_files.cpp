#include "launcher/doctor/small_files.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "common/text.hpp"

namespace cpprun::doctor {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

// Each start of a job reads several, so this calls the kernel directly, without streams.
std::optional<std::string> read_small_file(const std::string& path) {
  constexpr size_t kMost = 64 << 10;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string bytes;
  char piece[4096];
  while (bytes.size() < kMost) {
    const ssize_t got = ::read(file, piece, std::min(sizeof piece, kMost - bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes.append(piece, static_cast<size_t>(got));
  }
  ::close(file);
  return std::string(text::strip(bytes));
}

std::vector<std::string> list_folder(const std::string& path, IsMeant is_meant) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (is_meant(entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cpprun::doctor
