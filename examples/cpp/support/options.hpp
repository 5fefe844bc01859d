// Command line options of the examples: a thin cover over CLI11, which costs 3 s of compile time
// and is therefore seen by options.cpp alone. A program names its variables, then parses.
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

  // `value` holds the default and gets what the user says. Several names are joined by commas; a
  // name without dashes is a word in its place. A bool is a flag.
  Options& add(const std::string& names, std::string& value, const std::string& help);
  Options& add(const std::string& names, int& value, const std::string& help);
  Options& add(const std::string& names, int64_t& value, const std::string& help);
  Options& add(const std::string& names, double& value, const std::string& help);
  Options& add(const std::string& names, bool& value, const std::string& help);

  // Ends the program after --help (exit code 0) and after a mistake (2).
  void parse(cpprun::Args args);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace examples
