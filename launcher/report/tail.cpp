#include "launcher/report/tail.hpp"

#include <algorithm>

#include "common/machine/last_lines.hpp"

namespace cpprun::ctl {
namespace {

constexpr int64_t kReadBytes = 64 * 1024;
constexpr int64_t kTailLookBack = 4 << 20;  // searches at most this much for the last lines

int64_t size_of(std::ifstream& file) {
  file.seekg(0, std::ios::end);
  return static_cast<int64_t>(file.tellg());
}

}  // namespace

std::string read_at(std::ifstream& file, int64_t from, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  file.clear();
  file.seekg(from);
  file.read(text.data(), bytes);
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

Tail::Tail(std::string path, int64_t lines) : path_(std::move(path)), lines_(lines) {}

Tail Tail::from(std::string path, int64_t at) {
  Tail tail(std::move(path), 0);
  tail.at_ = at;
  return tail;
}

std::string Tail::next(bool takes_rest) {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return "";
  const int64_t size = size_of(file);
  if (at_ < 0) {
    const int64_t from = std::max<int64_t>(0, size - kTailLookBack);
    const std::string end = read_at(file, from, size - from);
    at_ = from + static_cast<int64_t>(last_lines_at(end, lines_));
  }
  if (size < at_) {
    at_ = 0;
    rest_.clear();
  }
  const std::string piece = read_at(file, at_, std::min(kReadBytes, size - at_));
  at_ += static_cast<int64_t>(piece.size());
  std::string all = rest_ + piece;
  const size_t end = all.rfind('\n');
  const bool gives_all = takes_rest || static_cast<int64_t>(all.size()) > kReadBytes;
  const size_t whole = gives_all ? all.size() : end == std::string::npos ? 0 : end + 1;
  rest_ = all.substr(whole);
  all.resize(whole);
  return all;
}

}  // namespace cpprun::ctl
