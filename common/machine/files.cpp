#include "common/machine/files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "common/machine/clock.hpp"
#include "common/machine/unique_fd.hpp"

namespace cpprun {

std::optional<std::string> read_file(const std::string& path, size_t most) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::string text;
  char piece[4096];
  while (text.size() < most) {
    const ssize_t got = ::read(file.get(), piece, std::min(sizeof piece, most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

bool read_until(int fd, Instant until, size_t most, std::string& text) {
  char piece[4096];
  while (text.size() < most) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now()).count();
    if (left <= 0) return false;
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t got = ::read(fd, piece, std::min(sizeof piece, most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(piece, static_cast<size_t>(got));
  }
  return true;
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return system_error("write", errno);
    text.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return static_cast<bool>(out);
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return path.empty() || error ? path : whole.lexically_normal().string();
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

std::vector<std::string> list_gpu_files(const std::string& folder) {
  constexpr std::string_view kStart = "nvidia";
  std::vector<std::string> names = list_folder(folder);
  std::erase_if(names, [&](const std::string& name) {
    return name.size() == kStart.size() || !name.starts_with(kStart) ||
           name.find_first_not_of("0123456789", kStart.size()) != std::string::npos;
  });
  std::ranges::sort(names);
  return names;
}

}  // namespace cpprun
