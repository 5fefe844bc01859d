// HelloReader: finds the hello (control_lines.hpp) in the first output of a cpprun on another host,
// and keeps the text of the login shell before it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun::ssh {

class HelloReader {
 public:
  // What follows the hello, which `bytes` have completed; nothing: there is none yet.
  std::optional<std::string> feed(std::string_view bytes);

  const std::string& version() const { return version_; }
  const std::string& login_text() const { return login_text_; }

 private:
  std::string received_;
  std::string version_;
  std::string login_text_;
};

}  // namespace cpprun::ssh
