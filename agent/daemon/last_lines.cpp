#include "agent/daemon/last_lines.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "common/limits/dashboard.hpp"

namespace cpprun {

std::vector<std::string> last_lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file;
  if (!path.empty()) file.open(path, std::ios::binary | std::ios::ate);
  if (!file) return lines;
  constexpr auto kMost = static_cast<int64_t>(limits::kTailLines * limits::kLineBytesTold);
  const int64_t size = file.tellg();
  const int64_t from = std::max<int64_t>(0, size - kMost);
  std::string text(static_cast<size_t>(std::max<int64_t>(0, size - from)), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (!text.empty() && lines.size() < limits::kTailLines) {
    if (text.back() == '\n') text.pop_back();
    const size_t before = text.rfind('\n');
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    lines.push_back(text.substr(begin, limits::kLineBytesTold));
    text.resize(begin);
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace cpprun
