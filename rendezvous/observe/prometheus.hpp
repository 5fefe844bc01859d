// Prometheus' text format, written family by family: help and type once, then a line per series.
// Label values are escaped, so they may hold anything. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cpprun::prometheus {

// Names and values.
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class Text {
 public:
  // Begins a family, to which the following series belong. `kind` is gauge, counter or histogram.
  void family(std::string_view name, std::string_view kind, std::string_view help);
  void series(const Labels& labels, int64_t value) { line("", labels, std::to_string(value)); }
  // `suffix` as in _bucket, _sum, _count of a histogram.
  void part(std::string_view suffix, const Labels& labels, double value);

  std::string take() { return std::move(out_); }

 private:
  void line(std::string_view suffix, const Labels& labels, std::string_view value);

  std::string name_;
  std::string out_;
};

// The shortest text that parses to the same number: "0.25", "10".
std::string number(double value);

}  // namespace cpprun::prometheus
