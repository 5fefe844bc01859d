#include "cpprun/worker/internal/exception_text.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <typeinfo>

namespace cpprun::worker {
namespace {

constexpr int kNestedMax = 16;
// These words separate message and stack in the text of LibTorch's exceptions.
constexpr std::string_view kTorchStack = "\nException raised from ";
// std::throw_with_nested wraps the exception's type in this template.
constexpr std::string_view kNested = "std::_Nested_exception<";

std::string readable(const std::type_info* type) {
  if (type == nullptr) return "an exception of another language";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return type->name();
  const std::string_view text = name.get();
  if (!text.starts_with(kNested)) return std::string(text);
  return std::string(text.substr(kNested.size(), text.size() - kNested.size() - 1));
}

void add(ExceptionText& to, const std::string& type, std::string_view what) {
  const size_t cut = what.find(kTorchStack);
  if (cut != std::string_view::npos && to.stack.empty()) to.stack = what.substr(cut + 1);
  if (!to.message.empty()) to.message += "\n  caused by ";
  to.message += type;
  if (!what.empty()) to.message.append(": ").append(what.substr(0, cut));
}

void describe(ExceptionText& to, const std::exception_ptr& exception, int left) {
  std::exception_ptr inner;
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    add(to, readable(abi::__cxa_current_exception_type()), error.what());
    if (auto* nested = dynamic_cast<const std::nested_exception*>(&error)) {
      inner = nested->nested_ptr();
    }
  } catch (const char* text) {
    add(to, "const char*", text == nullptr ? "" : text);
  } catch (const std::string& text) {
    add(to, "std::string", text);
  } catch (...) {
    add(to, readable(abi::__cxa_current_exception_type()), "");
  }
  if (inner && left > 0) describe(to, inner, left - 1);
}

}  // namespace

ExceptionText describe_exception(const std::exception_ptr& exception) {
  ExceptionText text;
  describe(text, exception, kNestedMax);
  return text;
}

}  // namespace cpprun::worker
