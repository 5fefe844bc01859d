// Makes the exceptions of LibTorch, Gloo and NCCL into those of errors.hpp, in this one place.
// Private to the SDK.
//
//   translated("all_reduce", group, [&] { work->wait(); });
//
// What was thrown as a DistError passes as it is. Everything else is sorted by its type, and where
// the type says nothing by the parts of its text that are the same in all versions of LibTorch.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {

// `where` begins the text: "all_reduce in group 0 (gloo, rank 1 of 2)".
std::exception_ptr translate(const std::exception_ptr& thrown, const std::string& where);
// The same, with `where` made of a call and its group (empty: the default one; it may be gone).
std::exception_ptr translate(const std::exception_ptr& thrown, const char* call,
                             const ProcessGroup& group);

// Only the sorting, for tests: the name of the class that a foreign text becomes.
const char* error_class_of(const std::string& text);

// `f`'s result, or a DistError that says where it happened.
template <class F>
auto translated(const std::string& where, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    std::rethrow_exception(translate(std::current_exception(), where));
  }
}

template <class F>
auto translated(const char* call, const ProcessGroup& group, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    std::rethrow_exception(translate(std::current_exception(), call, group));
  }
}

}  // namespace cpprun::dist
