// An exception in words: its type, its text, and what it was nested around.
#pragma once

#include <exception>
#include <string>

namespace cpprun::worker {

struct ExceptionText {
  std::string message;  // "std::runtime_error: text\n  caused by std::system_error: text"
  std::string stack;    // what the text itself says of its stack (c10::Error does); may be empty
};

ExceptionText describe_exception(const std::exception_ptr& exception);

}  // namespace cpprun::worker
