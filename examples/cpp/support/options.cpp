#include "examples/cpp/support/options.hpp"

#include <cstdlib>

#include <CLI/CLI.hpp>

namespace examples {

struct Options::Parser {
  CLI::App app;
};

Options::Options(const std::string& about) : parser_(new Parser{CLI::App(about)}) {}
Options::~Options() = default;

Options& Options::add(const std::string& names, std::string& value, const std::string& help) {
  parser_->app.add_option(names, value, help)->capture_default_str();
  return *this;
}

Options& Options::add(const std::string& names, int& value, const std::string& help) {
  parser_->app.add_option(names, value, help)->capture_default_str();
  return *this;
}

Options& Options::add(const std::string& names, int64_t& value, const std::string& help) {
  parser_->app.add_option(names, value, help)->capture_default_str();
  return *this;
}

Options& Options::add(const std::string& names, double& value, const std::string& help) {
  parser_->app.add_option(names, value, help)->capture_default_str();
  return *this;
}

Options& Options::add(const std::string& names, bool& value, const std::string& help) {
  parser_->app.add_flag(names, value, help);
  return *this;
}

void Options::parse(cpprun::Args args) {
  try {
    parser_->app.parse(args.argc, args.argv);
  } catch (const CLI::ParseError& error) {
    const bool is_mistake = parser_->app.exit(error) != 0;
    std::exit(is_mistake ? 2 : 0);
  }
}

}  // namespace examples
