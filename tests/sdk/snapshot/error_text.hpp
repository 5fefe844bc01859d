// The text of the error that a call throws.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace cpprun::test {

// "no error" if it throws none.
inline std::string error_text(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace cpprun::test
