// Translates the exceptions of LibTorch, Gloo and NCCL into those of errors.hpp. Private to the
// SDK.
//
//   translated("all_reduce", group, [&] { work->wait(); });
//
// Rethrows a DistError unchanged. Classifies other exceptions by type, and if the type is too
// general by parts of the text that are the same in all versions of LibTorch.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {

// `where` is the beginning of the text: "all_reduce in group 0 (gloo, rank 1 of 2)".
std::exception_ptr translate(const std::exception_ptr& thrown, const std::string& where);
// The same for a call and its group (empty: the default group); the group may be destroyed.
std::exception_ptr translate(const std::exception_ptr& thrown, const char* call,
                             const ProcessGroup& group);

// Returns the result of `f`; translates its exceptions.
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
