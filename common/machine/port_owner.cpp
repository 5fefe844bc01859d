#include "common/machine/port_owner.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/text.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

// Inode of the socket that listens on the port, from /proc/net/tcp or tcp6; "" if there is none.
std::string listening_inode(const char* table, uint16_t port) {
  std::ifstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words;
    for (std::string& word : text::split(line, ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    constexpr size_t kLocal = 1, kState = 3, kInode = 9;
    if (words.size() <= kInode || words[kLocal] == "local_address") continue;
    if (words[kState] != "0A") break;  // the kernel lists listening sockets first
    const size_t colon = words[kLocal].rfind(':');
    if (colon == std::string::npos) continue;
    if (std::strtol(words[kLocal].c_str() + colon + 1, nullptr, 16) == port) return words[kInode];
  }
  return "";
}

std::string listening_inode(uint16_t port) {
  const std::string inode = listening_inode("/proc/net/tcp", port);
  return inode.empty() ? listening_inode("/proc/net/tcp6", port) : inode;
}

bool holds_socket(const fs::path& fd_folder, const std::string& link) {
  std::error_code error;
  for (fs::directory_iterator entry(fd_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone).native() == link) return true;
  }
  return false;
}

}  // namespace

std::string describe_process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string program;
  std::getline(file, program);
  return "pid " + std::to_string(pid) + (program.empty() ? "" : " (" + program + ")");
}

bool is_served(uint16_t port) { return !listening_inode(port).empty(); }

std::string port_owner(uint16_t port) {
  const std::string inode = listening_inode(port);
  if (inode.empty()) return "";
  const std::string link = "socket:[" + inode + "]";
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = text::parse_int(entry->path().filename().native());
    if (pid && holds_socket(entry->path() / "fd", link)) {
      return describe_process(static_cast<int>(*pid));
    }
  }
  return "";
}

}  // namespace cpprun
