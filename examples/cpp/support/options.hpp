// Command line options of the examples. A thin wrapper, so that only options.cpp includes CLI11,
// which takes 3 s to compile. A program adds its variables, then parses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cpprun/worker/main.hpp"

namespace examples {

class Options {
 public:
  explicit Options(const std::string& about);
  ~Options();

  // `value` holds the default and receives the option's value. Several names are separated by
  // commas; a name without dashes is a positional argument. A bool is a flag.
  Options& add(const std::string& names, std::string& value, const std::string& help);
  Options& add(const std::string& names, int& value, const std::string& help);
  Options& add(const std::string& names, int64_t& value, const std::string& help);
  Options& add(const std::string& names, double& value, const std::string& help);
  Options& add(const std::string& names, bool& value, const std::string& help);

  // Exits after --help (code 0) and after an error (code 2).
  void parse(cpprun::Args args);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace examples
