#include "launcher/cpprunctl/command_line/validators.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

CLI::Validator number(const std::string& wanted, const std::function<bool(double)>& is_right) {
  const auto check_number = [wanted, is_right](const std::string& text) {
    const std::optional<double> value = text::parse_double(text);
    return value && is_right(*value) ? std::string() : "'" + text + "' is not a number " + wanted;
  };
  return {check_number, ""};
}

std::string bound_text(double bound) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", bound);
  return text.data();
}

}  // namespace

CLI::Validator above_zero() {
  return number("above 0", [](double value) { return value > 0; });
}

CLI::Validator from_zero() {
  return number("from 0 on", [](double value) { return value >= 0; });
}

CLI::Validator within(double least, double most) {
  return number("from " + bound_text(least) + " to " + bound_text(most),
                [least, most](double value) { return value >= least && value <= most; });
}

}  // namespace cpprun::ctl
