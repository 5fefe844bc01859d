// Prometheus' text format, written family by family: help and type once, then a line per series.
//
// Label values may hold anything: they are escaped. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cpprun::prometheus {

// Name and value of each.
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class Text {
 public:
  // Begins a family; the series that follow are of it. `kind` is gauge, counter or histogram.
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

// The shortest text that is read back as the same number: "0.25", "10".
std::string number(double value);

}  // namespace cpprun::prometheus
