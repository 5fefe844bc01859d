#include "launcher/doctor/small_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/text.hpp"

namespace cpprun::doctor {

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr std::streamsize kMost = 64 << 10;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes(static_cast<size_t>(kMost), '\0');
  file.read(bytes.data(), kMost);
  bytes.resize(static_cast<size_t>(file.gcount()));
  return std::string(text::strip(bytes));
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cpprun::doctor
