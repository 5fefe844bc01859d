#include "launcher/cpprunctl/text/value_text.hpp"

#include <charconv>

namespace cpprun::ctl {
namespace {

constexpr size_t kTextBytes = 60;  // longer texts are cut

std::string quoted(const std::string& text) {
  const bool is_long = text.size() > kTextBytes;
  return "\"" + clean(text.substr(0, kTextBytes)) + (is_long ? "...\"" : "\"");
}

std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

struct Words {
  std::string operator()(const pickle::TensorRef& tensor) const {
    std::string text = tensor.dtype + " [";
    for (size_t i = 0; i < tensor.sizes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(tensor.sizes[i]);
    }
    return text + "]";
  }
  std::string operator()(const pickle::None&) const { return "None"; }
  std::string operator()(bool value) const { return value ? "bool True" : "bool False"; }
  std::string operator()(int64_t value) const { return "int " + std::to_string(value); }
  std::string operator()(double value) const { return "float " + number(value); }
  std::string operator()(const std::string& text) const { return "str " + quoted(text); }
  std::string operator()(const pickle::Bytes& value) const {
    return "bytes, " + std::to_string(value.bytes.size());
  }
  std::string operator()(const pickle::List& list) const {
    return "list, " + std::to_string(list.items.size());
  }
  std::string operator()(const pickle::Tuple& tuple) const {
    return "tuple, " + std::to_string(tuple.items.size());
  }
  std::string operator()(const pickle::Dict& dict) const {
    return "dict, " + std::to_string(dict.pairs.size());
  }
  std::string operator()(const pickle::Dtype& dtype) const { return "dtype " + dtype.name; }
  std::string operator()(const pickle::Complex& value) const {
    return "complex " + number(value.real) + " " + number(value.imaginary);
  }
};

}  // namespace

std::string clean(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return text;
}

std::string value_text(const pickle::Value& value) { return std::visit(Words(), value.held()); }

}  // namespace cpprun::ctl
