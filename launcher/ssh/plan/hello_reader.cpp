#include "launcher/ssh/plan/hello_reader.hpp"

#include <utility>

#include "common/limits/ssh.hpp"
#include "launcher/ssh/plan/control_lines.hpp"

namespace cpprun::ssh {
namespace {

void keep_end(std::string& text) {
  if (text.size() > limits::kLoginTextBytes) text.erase(0, text.size() - limits::kLoginTextBytes);
}

}  // namespace

std::optional<std::string> HelloReader::feed(std::string_view bytes) {
  received_ += bytes;
  for (size_t end = 0; (end = received_.find('\n')) != std::string::npos;) {
    const std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    if (std::optional<std::string> version = version_of_hello(line)) {
      version_ = std::move(*version);
      return std::exchange(received_, {});
    }
    if (!line.empty()) login_text_ += line + "\n";
    keep_end(login_text_);
  }
  keep_end(received_);
  return std::nullopt;
}

}  // namespace cpprun::ssh
