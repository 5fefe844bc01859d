// Describes an exception: its type, its text, and the exceptions nested in it.
#pragma once

#include <exception>
#include <string>

namespace cpprun::worker {

struct ExceptionText {
  std::string message;  // "std::runtime_error: text\n  caused by std::system_error: text"
  std::string stack;    // the stack that the text contains (c10::Error has one); may be empty
};

ExceptionText describe_exception(const std::exception_ptr& exception);

}  // namespace cpprun::worker
