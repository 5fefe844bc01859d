#include "common/machine/port_owner.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/machine/files.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

// Inode of the socket that listens on the port, from /proc/net/tcp or tcp6; "" if there is none.
std::string listening_inode(const char* table, uint16_t port) {
  std::ifstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = text::words(line);
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

bool holds_socket(const std::string& fd_folder, const std::string& link) {
  return std::ranges::any_of(list_folder(fd_folder), [&](const std::string& name) {
    std::error_code gone;
    return fs::read_symlink(fd_folder + "/" + name, gone).native() == link;
  });
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
  for (const std::string& name : list_folder("/proc")) {
    const auto pid = text::parse_int(name);
    if (pid && holds_socket("/proc/" + name + "/fd", link)) {
      return describe_process(static_cast<int>(*pid));
    }
  }
  return "";
}

}  // namespace cpprun
